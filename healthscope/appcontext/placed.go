package appcontext

import (
	"context"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// PlacedResources are the resources of an app in a cluster.
type PlacedResources struct {
	// Names has the names of all, hooks too, and Order those that are applied one after the other.
	Names map[string]bool
	Order []string
}

// SplitResource returns the name of the object and the kind in the name of a resource, <name>+<Kind>.
func SplitResource(name string) (object, kind string, ok bool) { return splitPair(name) }

// ReadResources returns which resources there are at a place, without reading their objects.
func (s *Store) ReadResources(ctx context.Context, p Place) (PlacedResources, error) {
	found := PlacedResources{Names: map[string]bool{}}
	what := fmt.Sprintf("cannot read the resources of %q", p)
	if err := p.check(); err != nil {
		return found, failed(what, err)
	}
	below := p.Handle().Level(partResource)
	order := string(below.Level(partInstruction).Level(partOrder))
	results, err := s.readEach(ctx, []clientv3.Op{
		clientv3.OpGet(string(below), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(order),
	})
	if err != nil {
		return found, failed(what, err)
	}
	for _, kv := range results[0].Kvs {
		if _, parts, ok := splitKey(string(kv.Key)); ok && kindOfParts(parts) == kindResource {
			found.Names[path.Base(string(kv.Key))] = true
		}
	}
	for _, kv := range results[1].Kvs {
		text, err := decodeText(order, kv.Value)
		if err != nil {
			return found, failed(what, err)
		}
		var in struct{ Resorder []string }
		if err := decode(order, []byte(text), &in); err != nil {
			return found, failed(what, err)
		}
		found.Order = in.Resorder
	}
	return found, nil
}
