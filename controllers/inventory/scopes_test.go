package inventory

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// inOrder are scopes as they are listed.
type inOrder []types.NamespacedName

func (o inOrder) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nobody asks for one scope")
}

func (o inOrder) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if scopes, ok := list.(*corev1alpha2.HealthScopeList); ok {
		for _, n := range o {
			scopes.Items = append(scopes.Items, corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, Generation: 1}})
		}
	}
	return nil
}

// TestAScopeThatGoesWhileScopesAreListedIsGone has a scope deleted after it was listed, and before that has been taken
// in. No event tells of it again, so deletions would be held in its namespace for ever.
func TestAScopeThatGoesWhileScopesAreListedIsGone(t *testing.T) {
	t.Parallel()
	first, second := name("shop", "a"), name("shop", "b")
	j := judgedScopes{first: judged(placed(member("shop", "web", healthscope.Ready))...)}
	i := filled(j, nil, nil, "")
	i.scopeJudged(first)
	taken := make(chan struct{})
	var scopes *scopeList
	scopes = &scopeList{
		reader: inOrder{first, second},
		exists: func(s *corev1alpha2.HealthScope) {
			if s.Name == first.Name {
				go func() {
					defer close(taken)
					scopes.hear(func() { i.scopeGone(second) })
				}()
				select {
				case <-taken:
				case <-time.After(50 * time.Millisecond): // Long enough for an event that nothing keeps back.
				}
			}
			i.scopeExists(client.ObjectKeyFromObject(s), s.CreationTimestamp.Time, s.Generation)
		},
	}
	if err := scopes.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-taken
	if n := i.take(tenant, nil); len(n.Deletions) > 0 {
		t.Errorf("deletions are held: %v", n.Deletions)
	}
}
