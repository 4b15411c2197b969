package appcontext

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// GetAppHandle returns the handle of an app; ErrNotFound when it is not there.
func (ac *AppContext) GetAppHandle(ctx context.Context, app string) (Handle, error) {
	return ac.find(ctx, "app", "", app)
}

// GetClusterHandle returns the handle of an app's cluster; ErrNotFound when it is not there.
func (ac *AppContext) GetClusterHandle(ctx context.Context, app, cluster string) (Handle, error) {
	return ac.find(ctx, "cluster", "", app, cluster)
}

// GetResourceHandle returns the handle of a resource; ErrNotFound when it is not there.
func (ac *AppContext) GetResourceHandle(ctx context.Context, app, cluster, resource string) (Handle, error) {
	return ac.find(ctx, "resource", "", app, cluster, resource)
}

// GetClusterStatusHandle returns the handle of the status that a cluster has reported; ErrNotFound when there is none yet.
func (ac *AppContext) GetClusterStatusHandle(ctx context.Context, app, cluster string) (Handle, error) {
	return ac.find(ctx, "cluster", partStatus, app, cluster)
}

// GetResourceStatusHandle returns the handle of what rsync did with a resource; ErrNotFound when it has not begun.
func (ac *AppContext) GetResourceStatusHandle(ctx context.Context, app, cluster, resource string) (Handle, error) {
	return ac.find(ctx, "resource", partStatus, app, cluster, resource)
}

// GetClusterMetaHandle returns the handle of the number of a cluster's anyOf group, whether the cluster is in one or not;
// ErrNotFound when the cluster is not there.
func (ac *AppContext) GetClusterMetaHandle(ctx context.Context, app, cluster string) (Handle, error) {
	h, err := ac.GetClusterHandle(ctx, app, cluster)
	if err != nil {
		return "", err
	}
	return h.Level(partGroup), nil
}

// GetLevelHandle returns the handle of a level below a handle, such as "status"; ErrNotFound when nothing is there.
func (ac *AppContext) GetLevelHandle(ctx context.Context, h Handle, level string) (Handle, error) {
	if err := cmp.Or(checkHandle(ac.id, h), checkLevel(level)); err != nil {
		return "", err
	}
	return ac.requireExists(ctx, "level "+level, h.Level(level))
}

// find returns the handle of a level, if it is not empty, below what has these names, as handle does; ErrNotFound when nothing is
// there.
func (ac *AppContext) find(ctx context.Context, what, level string, names ...string) (Handle, error) {
	h, err := ac.handle(level, names...)
	if err != nil {
		return "", err
	}
	return ac.requireExists(ctx, what, h)
}

// requireExists returns a handle if it has a value, and fails with ErrNotFound otherwise.
func (ac *AppContext) requireExists(ctx context.Context, what string, h Handle) (Handle, error) {
	found, _, err := ac.store.read(ctx, string(h), clientv3.WithKeysOnly())
	if err != nil {
		return "", wrap(opList, err)
	}
	if len(found) == 0 {
		return "", wrap("cannot find "+what, keyError(ErrNotFound, string(h)))
	}
	return h, nil
}

// GetAllHandles returns a handle and all below it that have values, in the order of their keys; ErrNotFound when there
// are none.
func (ac *AppContext) GetAllHandles(ctx context.Context, h Handle) ([]Handle, error) {
	if err := checkHandle(ac.id, h); err != nil {
		return nil, err
	}
	found, _, err := ac.store.read(ctx, string(h), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err == nil && len(found) == 0 {
		err = keyError(ErrNotFound, string(h))
	}
	if err != nil {
		return nil, wrap(opList, err)
	}
	handles := make([]Handle, 0, len(found))
	for _, kv := range found {
		handles = append(handles, Handle(kv.Key))
	}
	return handles, nil
}

// GetClusterNames returns the clusters of an app, <provider>+<cluster>, in the order of their keys, without their values
// being sent; ErrNotFound when the app is not there.
func (ac *AppContext) GetClusterNames(ctx context.Context, app string) ([]string, error) {
	names, _, err := ac.names(ctx, partCluster, app)
	return names, err
}

// GetResourceNames returns the resources of an app in a cluster, <object>+<Kind>, as GetClusterNames.
func (ac *AppContext) GetResourceNames(ctx context.Context, app, cluster string) ([]string, error) {
	names, _, err := ac.names(ctx, partResource, app, cluster)
	return names, err
}

// names returns the names of what is one level below a part of what has these names, and the revision of etcd.
func (ac *AppContext) names(ctx context.Context, part string, parents ...string) (names []string, revision int64, err error) {
	parent, err := ac.handle("", parents...)
	if err != nil {
		return nil, 0, err
	}
	prefix := string(parent.Level(part))
	found, revision, err := ac.store.read(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err == nil && len(found) == 0 {
		// An empty list is valid only below a parent that exists.
		_, err = ac.store.get(ctx, string(parent))
	}
	if err != nil {
		return nil, 0, wrap(fmt.Sprintf("%s %q", opList, prefix), err)
	}
	for _, kv := range found {
		if name, ok := strings.CutSuffix(string(kv.Key[len(prefix):]), "/"); ok && name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names, revision, nil
}

// GetClusterGroupMap returns the clusters of an app by the number of their anyOf group, as they were at one moment;
// clusters without a group are left out. ErrNotFound when the app is not there.
func (ac *AppContext) GetClusterGroupMap(ctx context.Context, app string) (map[string][]string, error) {
	names, revision, err := ac.names(ctx, partCluster, app)
	if err != nil {
		return nil, err
	}
	clusters := ContextHandle(ac.id).Level(partApp).Level(app).Level(partCluster)
	reads := make([]clientv3.Op, 0, len(names))
	for _, name := range names {
		reads = append(reads, clientv3.OpGet(string(clusters.Level(name).Level(partGroup)), clientv3.WithRev(revision)))
	}
	results, err := ac.store.readEach(ctx, reads)
	if err != nil {
		return nil, wrap(opValue, err)
	}
	groups := map[string][]string{}
	for i, result := range results {
		for _, kv := range result.Kvs {
			group, err := decodeText(string(kv.Key), kv.Value)
			if err != nil {
				return nil, wrap(opValue, err)
			}
			groups[group] = append(groups[group], names[i])
		}
	}
	return groups, nil
}

// GetValue returns a value as JSON decodes it, but numbers as json.Number, which loses none of their digits; ErrNotFound
// when there is none.
func (ac *AppContext) GetValue(ctx context.Context, h Handle) (any, error) {
	if err := checkHandle(ac.id, h); err != nil {
		return nil, err
	}
	kv, err := ac.store.get(ctx, string(h))
	if err != nil {
		return nil, wrap(opValue, err)
	}
	var text json.RawMessage // Refuses what follows the value, which a Decoder would not look at.
	if err := decode(string(h), kv.Value, &text); err != nil {
		return nil, wrap(opValue, err)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return value, wrap(opValue, decoder.Decode(&value))
}

// GetAppInstruction returns the instruction of a type on the apps; ErrNotFound when there is none.
func (ac *AppContext) GetAppInstruction(ctx context.Context, instruction string) (string, error) {
	return ac.instruction(ctx, instruction, partApp)
}

// GetAppLevelInstruction returns the instruction of a type on one app; ErrNotFound when there is none.
func (ac *AppContext) GetAppLevelInstruction(ctx context.Context, app, instruction string) (string, error) {
	return ac.instruction(ctx, instruction, "", app)
}

// GetResourceInstruction returns the instruction of a type on the resources of an app in a cluster; ErrNotFound when
// there is none.
func (ac *AppContext) GetResourceInstruction(ctx context.Context, app, cluster, instruction string) (string, error) {
	return ac.instruction(ctx, instruction, partResource, app, cluster)
}

// instruction returns the text of an instruction, which is a string that holds JSON, or JSON itself.
func (ac *AppContext) instruction(ctx context.Context, instruction, level string, names ...string) (string, error) {
	h, err := ac.handle(level, names...)
	if err != nil {
		return "", err
	}
	if err := checkInstruction(instruction); err != nil {
		return "", err
	}
	kv, err := ac.store.get(ctx, string(h.Level(partInstruction).Level(instruction)))
	if err != nil {
		return "", wrap(opValue, err)
	}
	text, err := decodeText(string(kv.Key), kv.Value)
	return text, wrap(opValue, err)
}
