package appcontext

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DeleteApp deletes an app and everything in it. It is no error if nothing is there.
func (ac *AppContext) DeleteApp(ctx context.Context, app Handle) error {
	if err := checkHandle(ac.id, app, kindApp); err != nil {
		return err
	}
	_, parts, _ := app.split()
	return ac.delete(ctx, app, func(s DeploymentRef) bool { return s.isCluster() && parts[1] == NetworkIntents })
}

// DeleteCluster deletes a cluster from an app, and everything in it. It is no error if nothing is there.
func (ac *AppContext) DeleteCluster(ctx context.Context, cluster Handle) error {
	if err := checkHandle(ac.id, cluster, kindCluster); err != nil {
		return err
	}
	_, parts, _ := cluster.split()
	gone, ok := subjectOfCluster(parts[1], parts[3])
	return ac.delete(ctx, cluster, func(s DeploymentRef) bool { return ok && s == gone })
}

// delete deletes a handle with everything below it, and the entries of the context in the indices of the subjects that match. If
// there are more entries than one transaction can hold, it deletes some of them before.
func (ac *AppContext) delete(ctx context.Context, h Handle, match func(DeploymentRef) bool) error {
	prefix := backReferencePrefix(ac.id)
	entries, _, err := ac.store.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return wrap(opDelete, err)
	}
	t := &transaction{}
	for _, kv := range entries {
		s, _, ok := subjectOf(string(kv.Key[len(prefix):]))
		if !ok || !match(s) {
			continue
		}
		if len(t.operations) >= maxOperations/2 {
			if err := ac.store.commit(ctx, t); err != nil {
				return wrap(opDelete, err)
			}
			t = &transaction{}
		}
		t.remove(string(kv.Key), s.key(ownContext, ac.id))
	}
	t.removeAll(string(h))
	t.removeAll(sidecarPrefix(h))
	return wrap(opDelete, ac.store.commit(ctx, t))
}

// DeleteClusterMetaGrpHandle takes a cluster out of its anyOf group. It takes the handle of the cluster or that of
// GetClusterMetaHandle. It is no error if the cluster is in no group.
func (ac *AppContext) DeleteClusterMetaGrpHandle(ctx context.Context, h Handle) error {
	if err := checkHandle(ac.id, h); err != nil {
		return err
	}
	_, parts, _ := h.split()
	if len(parts) == 5 && parts[4] == partGroup {
		parts = parts[:4]
	} else {
		h = h.Level(partGroup)
	}
	if kindOfParts(parts) != kindCluster {
		return &invalidError{"handle", string(h), "must be the handle of a cluster or its group"}
	}
	t := &transaction{}
	t.remove(string(h))
	return wrap(opDelete, ac.store.commit(ctx, t))
}

// DeleteInstruction deletes an instruction. It is no error if it is not there.
func (ac *AppContext) DeleteInstruction(ctx context.Context, instruction Handle) error {
	if err := checkHandle(ac.id, instruction); err != nil {
		return err
	}
	_, parts, _ := instruction.split()
	if len(parts) < 3 || parts[len(parts)-2] != partInstruction || checkInstruction(parts[len(parts)-1]) != nil {
		return &invalidError{"handle", string(instruction), "must be the handle of an instruction"}
	}
	t := &transaction{}
	t.remove(string(instruction))
	return wrap(opDelete, ac.store.commit(ctx, t))
}
