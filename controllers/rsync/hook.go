package rsync

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// awaitHook waits until the work of a hook is done. It fails when the deadline has passed. hook is the object in the response of
// the API server to the apply request. A failed hook is a refusal.
func (c *cluster) awaitHook(ctx context.Context, hook *unstructured.Unstructured, deadline time.Time) error {
	done, err := hookDone(hook)
	if done || err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return c.await(ctx, hook, hookDone)
}

// await watches an object, from the version that was read, until done reports true or fails. An object that is deleted is a refusal.
func (c *cluster) await(ctx context.Context, o *unstructured.Unstructured, done func(object any) (bool, error)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))
	w, err := c.client.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{metav1.ObjectNameField: o.GetName()},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: o.GetResourceVersion()}})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			if done, err := done(event.Object); done || err != nil {
				return err
			}
		case watch.Deleted:
			return refusalError{errors.Errorf("%s %q was deleted before it had done its work", o.GetKind(), o.GetName())}
		case watch.Error:
			return apierrors.FromObject(event.Object)
		case watch.Bookmark:
		}
	}
	return errors.Errorf("the watch of %s %q has ended", o.GetKind(), o.GetName())
}

// hookDone reports whether the work of a hook is done: a Job or a Pod has succeeded, and a Deployment, a DaemonSet or a StatefulSet
// is Ready. Objects of other kinds have no work to do. The error is the reason why a hook has failed.
func hookDone(object any) (bool, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false, errors.Errorf("cannot read a hook from %T", object)
	}
	state := rules.Evaluate(o, rules.Options{})
	succeeded, failed := state.State == healthscope.Ready, state.State == healthscope.Failed
	switch o.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		succeeded = succeeded && state.Reason == healthscope.ReasonCompleted
	case "Pod": // A running Pod is Ready, and one whose container has failed may run it again.
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		succeeded, failed = phase == string(corev1.PodSucceeded), phase == string(corev1.PodFailed)
	case "Deployment.apps", "DaemonSet.apps", "StatefulSet.apps":
	default:
		return true, nil
	}
	if failed {
		return false, refusalError{errors.Errorf("hook %s %q has failed: %s %s", o.GetKind(), o.GetName(), state.Reason, state.Message)}
	}
	return succeeded, nil
}
