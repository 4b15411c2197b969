package fleet

import (
	"context"
	"encoding/json"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// wholeTimeout is the timeout for reading a bundle from its cluster.
const wholeTimeout = 30 * time.Second

// ErrGone says that a bundle does not exist in its cluster.
var ErrGone = errors.New("the bundle does not exist any more")

// FullBundle is a complete ResourceBundleState, with all objects, as its API server stores it.
type FullBundle struct {
	metav1.ObjectMeta `json:"metadata"`

	// Status is the status as unmodified JSON; empty when no monitor has reported.
	Status json.RawMessage `json:"status"`
}

// ReadBundle reads a complete bundle, which the view does not store, from its cluster
// with one request and a timeout. It returns ErrGone when the bundle does not
// exist. It lists this one bundle, so that the hub needs no rights beyond those for its watch of bundles.
func (v *View) ReadBundle(ctx context.Context, key BundleKey) (_ *FullBundle, err error) {
	defer func() {
		err = errors.Wrapf(err, "cannot read bundle %q of cluster %q", types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, key.Cluster)
	}()
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	access, ok := v.Access(key.Cluster)
	if !ok {
		return nil, errors.New("the cluster has not been read yet, or is not known")
	}
	data, err := access.reader.Get().Namespace(key.Namespace).Resource(bundlesResource).
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", key.Name).String()).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list struct{ Items []FullBundle }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == key.Name {
			return &list.Items[i], nil
		}
	}
	return nil, ErrGone
}
