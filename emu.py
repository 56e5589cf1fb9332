import sys; sys.argv=["x","0","/dev/null"]
exec(open("/tmp/r32/trav.py").read().split("res={}")[0])
def lifo(roots,deps):
    done=set(); stack=list(roots); out=[]
    while stack:
        n=stack[-1]
        if n in done: stack.pop(); continue
        miss=[d for d in deps(n) if d not in done]
        if miss: stack.extend(miss)
        else:
            stack.pop(); done.add(n); out.append(n)
    return out
import collections
bad=collections.Counter()
for s in range(400):
    vs,outs,bl,r=graph(s)
    deps=lambda n:[v.owner for v in n.inputs if v.owner]
    roots=[o.owner for o in outs if o.owner]
    if lifo(roots,deps)!=list(walk_toposort(roots,deps)): bad["walk"]+=1
    if lifo(roots,deps)!=list(toposort(outs)): bad["topo"]+=1
    b=set(bl)
    depb=lambda n:[v.owner for v in n.inputs if v.owner and v not in b]
    rb=[o.owner for o in outs if o.owner and o not in b]
    if lifo(rb,depb)!=list(toposort(outs,bl)): bad["topob"]+=1
    if lifo(rb,depb)!=list(io_toposort(bl,outs)): bad["io"]+=1
    depsall=lambda x: x.inputs if isinstance(x,Apply) else ([x.owner] if x.owner else [])
    if lifo(outs,depsall)!=list(general_toposort(outs,depsall)): bad["gv"]+=1
    nodes=list(ancestors(outs)); own=[v.owner for v in nodes if v.owner]
    ordr={}
    for _ in range(2):
        if len(own)>1:
            a,b_=r.sample(own,2)
            if a.op.k>b_.op.k: ordr.setdefault(a,[]).append(b_)
    depo=lambda n:[v.owner for v in n.inputs if v.owner]+ordr.get(n,[])
    if lifo(roots,depo)!=list(toposort_with_orderings(outs,orderings=ordr)): bad["ord"]+=1
    depo2=lambda n:ordr.get(n,[])+[v.owner for v in n.inputs if v.owner]
    if lifo(roots,depo2)!=list(toposort_with_orderings(outs,orderings=ordr)): bad["ord2"]+=1
    depo3=lambda x: [y for y in (([x.owner] if x.owner and x not in b else []) if not isinstance(x,Apply) else [*ordr.get(x,[]),*x.inputs])]
    bb=b; b=set()
    if [n for n in lifo(outs,depo3) if isinstance(n,Apply)]!=list(toposort_with_orderings(outs,orderings=ordr)): bad["ord3"]+=1
    depo4=lambda x: (([x.owner] if x.owner else []) if not isinstance(x,Apply) else [*x.inputs,*ordr.get(x,[])])
    if [n for n in lifo(outs,depo4) if isinstance(n,Apply)]!=list(toposort_with_orderings(outs,orderings=ordr)): bad["ord4"]+=1
    if list(truncated_graph_inputs(outs,bl)) != list(truncated_graph_inputs(outs,bl)): bad['det']+=1
print(bad)
