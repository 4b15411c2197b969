package inventory

import (
	"context"
	gosync "sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// scopeList tells, once, which scopes exist. Afterwards every change is heard of; but that nothing has been heard of a scope must not look as if there was none. It is safe for concurrent use.
type scopeList struct {
	reader client.Reader
	exists func(*corev1alpha2.HealthScope)

	mu   gosync.Mutex // guards the rest
	done bool
}

// hear takes in an event of a scope. While scopes are being listed it waits: what has been listed may be older than the event.
func (l *scopeList) hear(event func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	event()
}

// read reads the scopes, unless it has done so before.
func (l *scopeList) read(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return nil
	}
	var list corev1alpha2.HealthScopeList
	if err := l.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrap(err, "cannot list HealthScopes")
	}
	for i := range list.Items {
		l.exists(&list.Items[i])
	}
	l.done = true
	return nil
}
