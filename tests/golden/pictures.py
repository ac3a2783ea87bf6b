"""Write pictures of all kinds to pictures/, and to pictures.safetensors what PIL makes of them: pictures.py OUT

NAME/image is [H, W, C] after the loader of torchvision's ImageFolder (convert("RGB")), but grey pictures keep their one
channel and 16 bits stay 16 bits. NAME/label holds class ids: values as stored, indices of palettes. Pixels of PNG with
16-bit colours and of interlaced PNG are those that were stored, since PIL writes neither. Needs Pillow, tifffile and
safetensors; the pictures are 29 x 21 pixels, so rows end within bytes and blocks.
"""
import struct
import sys
import zlib

import numpy as np
import tifffile
from PIL import Image
from safetensors.numpy import save_file

OUT = sys.argv[1]
H, W = 21, 29
random = np.random.default_rng(7)
y, x = np.mgrid[0:H, 0:W]
# Smooth colours, so that JPEG has something to do, and some noise.
rgb = np.stack([8 * y + x, 255 - 6 * x, 5 * y + 3 * x], -1).astype(int) + random.integers(-9, 10, (H, W, 3))
rgb = rgb.clip(0, 255).astype(np.uint8)
grey = rgb[..., 1]
alpha = random.integers(0, 256, (H, W), dtype=np.uint8)
deep = (rgb.astype(np.uint16) << 8) + random.integers(0, 256, (H, W, 3), dtype=np.uint16)
ids = ((x // 7 + y // 5) % 3).astype(np.uint8)
arrays = {}


def png(name, values, bits, colour, interlaced=False):
    """PNG by hand, without a filter: 'values' is [H, W, samples]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def rows(v):
        return b"".join(b"\0" + (r.astype(">u2") if bits == 16 else r.astype("u1")).tobytes() for r in v if r.size)

    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    data = b"".join(rows(values[a::c, b::d]) for a, b, c, d in passes) if interlaced else rows(values)
    head = struct.pack(">IIBBBBB", W, H, bits, colour, 0, 0, int(interlaced))
    with open(f"{OUT}/pictures/{name}", "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def keep(name, image, label=None):
    image = np.asarray(image).astype(np.float32)
    arrays[f"{name}/image"] = image.reshape(H, W, -1).copy()
    if label is not None:
        arrays[f"{name}/label"] = np.asarray(label).astype(np.int32).reshape(H, W).copy()


def by_pil(name, picture, label=None, **options):
    path = f"{OUT}/pictures/{name}"
    picture.save(path, **options)
    read = Image.open(path)
    keep(name, read.convert("L" if read.mode in ("L", "1", "LA") else "RGB"), label)


palette = Image.fromarray(ids, "P")
palette.putpalette([10, 20, 30, 200, 0, 0, 0, 90, 255])
by_pil("grey.png", Image.fromarray(grey), grey)
by_pil("grey_alpha.png", Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha)]), grey)
by_pil("rgb.png", Image.fromarray(rgb))
by_pil("rgba.png", Image.merge("RGBA", [*Image.fromarray(rgb).split(), Image.fromarray(alpha)]))
by_pil("bits1.png", Image.fromarray(ids > 0), ids > 0)
by_pil("palette2.png", palette, ids, bits=2)
by_pil("palette8_transparent.png", palette, ids, bits=8, transparency=1)
Image.fromarray(deep[..., 0]).save(f"{OUT}/pictures/grey16.png")
keep("grey16.png", deep[..., 0], deep[..., 0])
png("rgb16.png", deep, 16, 2)
keep("rgb16.png", deep)
png("interlaced.png", rgb, 8, 2, True)
assert (np.asarray(Image.open(f"{OUT}/pictures/interlaced.png")) == rgb).all()
keep("interlaced.png", rgb)

by_pil("grey.jpg", Image.fromarray(grey), quality=90)
by_pil("rgb.jpg", Image.fromarray(rgb), quality=85)
by_pil("rgb444.jpeg", Image.fromarray(rgb), quality=95, subsampling=0)
by_pil("progressive.JPG", Image.fromarray(rgb), quality=80, progressive=True)
by_pil("cmyk.jpg", Image.fromarray(np.dstack([rgb, alpha]), "CMYK"), quality=95)
turned = Image.Exif()
turned[0x0112] = 6
by_pil("orientation.jpg", Image.fromarray(rgb), quality=85, exif=turned)

by_pil("rgb.tif", Image.fromarray(rgb))
by_pil("lzw.tiff", Image.fromarray(rgb), compression="tiff_lzw")
by_pil("deflate.tif", Image.fromarray(grey), grey, compression="tiff_adobe_deflate")
by_pil("bits1.tif", Image.fromarray(ids > 0), ids > 0, compression="group4")
by_pil("palette.tif", palette, ids)
by_pil("rgba.tif", Image.merge("RGBA", [*Image.fromarray(rgb).split(), Image.fromarray(alpha)]))
by_pil("jpeg.tif", Image.fromarray(rgb), compression="jpeg", quality=90)


def by_tifffile(name, values, **options):
    tifffile.imwrite(f"{OUT}/pictures/{name}", values, metadata=None, **options)


by_tifffile("tiled.tif", rgb, tile=(16, 16), photometric="rgb", compression="deflate")
keep("tiled.tif", rgb)
by_tifffile("planes.tif", rgb.transpose(2, 0, 1), photometric="rgb", planarconfig="separate", rowsperstrip=5)
keep("planes.tif", rgb)
by_tifffile("planes_tiled.tif", rgb.transpose(2, 0, 1), photometric="rgb", planarconfig="separate", tile=(16, 32))
keep("planes_tiled.tif", rgb)
by_tifffile("rgb16_big.tif", deep, photometric="rgb", byteorder=">", bigtiff=True, rowsperstrip=4)
keep("rgb16_big.tif", deep)
by_tifffile("white.tif", 255 - grey, photometric="miniswhite")
keep("white.tif", grey, 255 - grey)
by_tifffile("labels16.tif", ids.astype(np.uint16) * 300, photometric="minisblack")
keep("labels16.tif", ids.astype(int) * 300, ids.astype(int) * 300)
save_file(arrays, f"{OUT}/pictures.safetensors")
