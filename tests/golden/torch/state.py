"""Write state.pt, state_protocol4.pt and state_old.pt of tests/unit/checkpoint/check_torch_file.c: values of every
kind that a checkpoint may hold, in the three forms of torch.save."""
import collections
import numpy as np
import torch

base=torch.arange(24.).reshape(2,3,4)
def make():
    n=collections.OrderedDict()
    n['a.weight']=base.clone()
    n['b.weight']=(base*2).permute(2,0,1)
    n['alias.weight']=n['a.weight']
    n['row']=n['a.weight'][1,1:,:]
    n['half']=torch.tensor([1.5,-2.0,0.25],dtype=torch.float16)
    n['brain']=torch.tensor([1.5,-2.0,3.0],dtype=torch.bfloat16)
    n['double']=torch.tensor([0.1,1e300],dtype=torch.float64)
    n['bias']=torch.nn.Parameter(torch.tensor([7.,8.]))
    n['num_batches_tracked']=torch.tensor(5)
    n['u16']=torch.tensor([1,65535],dtype=torch.uint16)
    n['empty']=torch.empty(0,3)
    n._metadata=collections.OrderedDict(a={'version':1})
    return {'network_weights':n,'epoch':3,'big':1<<70,'best':np.float64(0.5),'count':np.int64(-3),
     'flag':np.bool_(True),'array':np.arange(6.).reshape(2,3),
     'fortran':np.asfortranarray(np.arange(6,dtype=np.int16).reshape(2,3)),
     'axes':(0,1,2),'none':None,'yes':True,'rate':0.01,'name':'nnUNetTrainer','set':{1},'bytes':b'ab\xff',
     'device':torch.device('cuda',1),
     'size':torch.Size([2,3]),'type':torch.float32,
     'init_args':{'configuration':'3d_fullres','plans':{'spacing':[3.0,1.0]}},'negative':-70000}
torch.save(make(),'tests/golden/torch/state.pt')
torch.save(make(),'tests/golden/torch/state_old.pt',_use_new_zipfile_serialization=False)
torch.save(make(),'tests/golden/torch/state_protocol4.pt',pickle_protocol=4)
