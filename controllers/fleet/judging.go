package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// changed says that a bundle of the member has changed. It does not block.
func (m *member) changed(name types.NamespacedName) { m.queue.Add(name) }

// again asks for another look at a bundle of the member.
func (m *member) again(key BundleKey, after time.Duration) {
	m.queue.AddAfter(types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, after)
}

// judge looks at bundles of the member that have changed until ctx ends. Each member has its own: who judges all bundles
// of a large cluster, or waits until that is done, has no time for those of others.
func (m *member) judge(ctx context.Context) {
	for {
		name, shutdown := m.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			m.look(name)
		}
		m.queue.Done(name)
	}
}
