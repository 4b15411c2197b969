package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// TestAllClustersAreKnownOnceItIsSaidSo looks at the view in the moment in which it says that it knows which clusters
// there are. One that came later would count as one that is not there, and as one without bundles: what is kept for it would be deleted.
func TestAllClustersAreKnownOnceItIsSaidSo(t *testing.T) {
	t.Parallel()
	const members = 200
	ctx, cancel := context.WithCancel(t.Context())
	h := &hub{
		ctx: ctx, view: newView("local"), clock: clock.RealClock{}, members: map[string]*member{},
		options: Options{ClusterName: "local", Members: &Members{Parse: func([]byte) (*rest.Config, error) { return nil, errors.New("not today") }}},
	}
	defer h.running.Wait()
	defer cancel()
	secrets := make([]*corev1.Secret, 0, members)
	for i := range members {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge%03d", i)}})
	}
	known := 0
	defer h.view.SubscribeClusters(func(before, now *ClusterState) {
		if before != nil && now.Name == "local" {
			known = len(h.view.clusters) // The view is locked while it tells.
		}
	})()
	h.follow(secrets, logr.Discard())
	if known != members+1 {
		t.Errorf("%d of %d clusters are known when the view says that it knows all", known, members+1)
	}
	if h.view.CompleteFor("edge000", "") {
		t.Error("a cluster that has not been read yet counts as one whose bundles are all known")
	}
}
