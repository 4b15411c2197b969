package enrol

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
)

// leaseGrace is how long after its duration a Lease may go without renewal before its holder counts as gone: clocks differ.
const leaseGrace = 15 * time.Second

// Report is what the controller has published, and whether it is up to date.
type Report struct {
	// Controller is the state of the controller that keeps it up to date.
	Controller Controller `json:"controller"`
	Document
}

// Controller is what is known of the controller.
type Controller struct {
	// Running is true when its Lease is renewed.
	Running bool `json:"running"`
	// LastRenewed is when the Lease was renewed last; nil when that is not known.
	LastRenewed *time.Time `json:"lastRenewed,omitempty"`
	// Message is why it does not count as running.
	Message string `json:"message,omitempty"`
}

// AllConnected reports whether every cluster is Connected, as far as is known now. A rejected Secret is a cluster that is not.
func (r Report) AllConnected() bool {
	for _, c := range r.Clusters {
		if c.State != fleet.Connected {
			return false
		}
	}
	return r.Controller.Running && r.Omitted == 0 && len(r.RejectedSecrets) == 0
}

// Read reads what the controller has published in a namespace, and its Lease.
func Read(ctx context.Context, reader client.Reader, namespace string, now time.Time) (Report, error) {
	var published corev1.ConfigMap
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ConfigMapName}, &published)
	if apierrors.IsNotFound(err) {
		return Report{}, errors.Errorf("there is no ConfigMap %q: the controller has not written it yet, or it does not run", namespace+"/"+ConfigMapName)
	}
	if err != nil {
		return Report{}, errors.Wrapf(err, "cannot read ConfigMap %q", namespace+"/"+ConfigMapName)
	}
	d, err := decode(published.Data[documentKey])
	if err != nil {
		return Report{}, err
	}
	return Report{Document: d, Controller: controllerOf(ctx, reader, d.Lease, now)}, nil
}

// controllerOf returns the state of the controller by its Lease: it runs if a holder renews the Lease. A Lease that cannot be
// read is no error: the document is still useful.
func controllerOf(ctx context.Context, reader client.Reader, name ObjectName, now time.Time) (c Controller) {
	var lease coordinationv1.Lease
	err := reader.Get(ctx, types.NamespacedName(name), &lease)
	if lease.Spec.RenewTime != nil {
		c.LastRenewed = wholeSeconds(lease.Spec.RenewTime.Time)
	}
	validity := leaseGrace + time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second
	switch {
	case apierrors.IsNotFound(err):
		c.Message = "it has no Lease " + name.String()
	case err != nil:
		c.Message = "its Lease cannot be read: " + err.Error()
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
		c.Message = "it has given its Lease " + name.String() + " back"
	case c.LastRenewed == nil || now.Sub(*c.LastRenewed) > validity:
		c.Message = "it does not renew its Lease " + name.String()
	default:
		c.Running = true
	}
	return c
}

// String returns the name as namespace/name.
func (n ObjectName) String() string { return n.Namespace + "/" + n.Name }
