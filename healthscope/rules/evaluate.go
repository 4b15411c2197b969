package rules

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

// groupKind names a kind in its API group. Rules do not depend on the version:
// the fields they read mean the same in each.
type groupKind struct{ group, kind string }

// rule judges an object of the kind it is for. It fills in the verdict, and
// reports what it cannot read to the object.
type rule func(o *object, verdict *healthscope.Result)

// rulesByKind holds the rules. The group extensions is that of workloads and
// ingresses before Kubernetes 1.16 and 1.22; old monitors still report them so.
var rulesByKind = map[groupKind]rule{
	{"", "Pod"}:                      judgePod,
	{"apps", "Deployment"}:           judgeDeployment,
	{"extensions", "Deployment"}:     judgeDeployment,
	{"apps", "ReplicaSet"}:           judgeReplicaSet,
	{"extensions", "ReplicaSet"}:     judgeReplicaSet,
	{"apps", "StatefulSet"}:          judgeStatefulSet,
	{"apps", "DaemonSet"}:            judgeDaemonSet,
	{"extensions", "DaemonSet"}:      judgeDaemonSet,
	{"batch", "Job"}:                 judgeJob,
	{"", "Service"}:                  judgeService,
	{"networking.k8s.io", "Ingress"}: judgeIngress,
	{"extensions", "Ingress"}:        judgeIngress,
	{"", "PersistentVolumeClaim"}:    judgeClaim,
	{"", "ConfigMap"}:                judgeExistence,
	{"", "Secret"}:                   judgeExistence,
}

// Evaluate judges one object by the rule for its kind, and by kstatus when
// there is no rule for it. The first of these that applies decides:
//
//  1. an object that is being deleted is Terminating, Deleting;
//  2. one whose status speaks of an older generation is Pending, StaleGeneration;
//  3. the rule for its kind;
//  4. kstatus.
//
// It never panics and never fails: an object that cannot be read as its kind is
// Unknown, InvalidObject, with a message that names the field.
//
// The result names the object, its version, its uid and, from the controlling
// ownerReference, its owner. It has no Since, no Cluster and no Labels, which
// the caller sets. Replicas, Serving, Suspended and ProgressDeadline are also
// given for an object that is deleted or stale, as far as the object tells.
func Evaluate(u *unstructured.Unstructured) healthscope.Result {
	if u == nil || len(u.Object) == 0 {
		return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonInvalidObject, Message: "the object is empty"}
	}
	o := read(u.Object)
	verdict := identify(o)
	deleted, stale := o.deleted(), o.stale()
	switch judge := rulesByKind[groupKind{verdict.Group, verdict.Kind}]; {
	case judge != nil:
		judge(o, &verdict)
	case !deleted && !stale:
		judgeByKstatus(o, &verdict)
	}
	switch {
	case deleted:
		o.override(&verdict, healthscope.Terminating, healthscope.ReasonDeleting, "the object is being deleted")
	case o.problem != "":
		o.override(&verdict, healthscope.Unknown, healthscope.ReasonInvalidObject, o.problem)
		verdict.Serving, verdict.Replicas = false, nil
	case stale:
		o.override(&verdict, healthscope.Pending, healthscope.ReasonStaleGeneration, "the status is older than the spec")
		verdict.Progressing = true
	}
	verdict.Message = bounded(verdict.Message)
	return verdict
}

// identify returns a result that says which object it is about, and nothing else.
func identify(o *object) healthscope.Result {
	var r healthscope.Result
	r.Group, r.Version = splitAPIVersion(o.text(o.root, "apiVersion"))
	r.Kind = o.text(o.root, "kind")
	if r.Kind == "" {
		o.failf("kind is missing")
	}
	r.Namespace = o.text(o.metadata, "metadata.namespace")
	r.Name = o.text(o.metadata, "metadata.name")
	r.UID = word(o.metadata["uid"])
	r.Owner = controller(o.metadata)
	return r
}

// splitAPIVersion splits an apiVersion into group and version. The core group has the empty name.
func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}

// controller returns the owner that ownerReferences name as the controller; nil when there is none.
func controller(metadata map[string]any) *healthscope.Owner {
	references, _ := metadata["ownerReferences"].([]any)
	for _, item := range references {
		reference, _ := item.(map[string]any)
		if isController, _ := reference["controller"].(bool); !isController {
			continue
		}
		group, _ := splitAPIVersion(word(reference["apiVersion"]))
		owner := healthscope.Owner{Group: group, Kind: word(reference["kind"]), Name: word(reference["name"])}
		if owner.Kind != "" && owner.Name != "" {
			return &owner
		}
	}
	return nil
}

// deleted says whether the object is being deleted.
func (o *object) deleted() bool { return word(o.metadata["deletionTimestamp"]) != "" }

// stale says whether the status speaks of an older generation than the object has. Without both numbers it does not.
func (o *object) stale() bool {
	generation, known := o.count(o.metadata, "metadata.generation")
	observed, seen := o.count(o.status, "status.observedGeneration")
	return known && seen && observed < generation
}

// override replaces what a rule said by something that goes before it.
func (o *object) override(verdict *healthscope.Result, state healthscope.State, reason healthscope.Reason, message string) {
	verdict.State, verdict.Reason, verdict.Message = state, reason, message
	verdict.Progressing, verdict.Warning = false, false
}
