package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// HealthCheckExpr is a health rule in CEL (cel.dev) for the objects of a kind. apiVersion, kind, current, inProgress and failed
// are those of healthCheckExprs in a Kustomization of Flux. name and match are additions.
type HealthCheckExpr struct {
	// name is the name of the rule in messages, metrics and the output of `healthscope explain`. Without it: `<kind>.<group>`, or
	// `<kind>` in the core group. The names of rules must be unique.
	// +optional
	Name string `json:"name,omitempty"`
	// apiVersion is the API group of the objects, with any version, such as `cert-manager.io/v1`. As in Flux, the version is not
	// compared.
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the objects.
	Kind string `json:"kind"`
	// match limits the rule to some objects of the kind. Without it: all objects of the kind.
	// +optional
	Match *ObjectMatch `json:"match,omitempty"`
	// current is the CEL expression that is true when an object is Ready.
	Current string `json:"current"`
	// inProgress is the CEL expression that is true when an object is Pending. It is evaluated before the others.
	// +optional
	InProgress string `json:"inProgress,omitempty"`
	// failed is the CEL expression that is true when an object is Failed. It is evaluated before `current`.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// ObjectMatch selects objects. All fields that are set must match.
type ObjectMatch struct {
	// name is the name of the one object.
	// +optional
	Name string `json:"name,omitempty"`
	// namespace is the namespace of the objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// labelSelector selects objects by their labels, in the form that `kubectl -l` takes, such as `tier=gold,env in (test,prod)`.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// RuleName returns the name of the rule: name if it is set, else <kind>.<group>, or <kind> for the core group.
func (e *HealthCheckExpr) RuleName() string {
	group, _, found := strings.Cut(e.APIVersion, "/")
	switch {
	case e.Name != "":
		return e.Name
	case !found:
		return e.Kind
	default:
		return e.Kind + "." + group
	}
}

// healthCheckExprs checks all fields except the expressions, which are compiled elsewhere, because an invalid expression must not
// stop the program.
func (v *validator) healthCheckExprs(path *field.Path, exprs []HealthCheckExpr) {
	names := map[string]bool{}
	for i := range exprs {
		e, p := &exprs[i], path.Index(i)
		v.exprKind(p, e)
		if e.Match != nil {
			v.objectMatch(p.Child("match"), e.Match)
		}
		if e.Current == "" {
			v.add(field.Required(p.Child("current"), "give the CEL expression that is true when an object is Ready"))
		}
		if e.Name != "" {
			v.check(p.Child("name"), e.Name, content.IsLabelValue)
		}
		if name := e.RuleName(); names[name] {
			err := field.Duplicate(p.Child("name"), name)
			err.Detail = "give each rule a name of its own"
			v.add(err)
		} else if e.Kind != "" {
			names[name] = true
		}
	}
}

func (v *validator) exprKind(path *field.Path, e *HealthCheckExpr) {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	switch {
	case e.APIVersion == "":
		v.add(field.Required(path.Child("apiVersion"), "name group and version, such as cert-manager.io/v1"))
	case err != nil || gv.Version == "" || strings.Contains(e.APIVersion, "*"):
		v.add(field.Invalid(path.Child("apiVersion"), e.APIVersion, "must be group/version, or v1"))
	}
	if e.Kind == "" {
		v.add(field.Required(path.Child("kind"), "name the kind, such as Certificate"))
		return
	}
	for _, msg := range content.IsDNS1123Label(strings.ToLower(e.Kind)) {
		v.add(field.Invalid(path.Child("kind"), e.Kind, "must be the name of one kind: "+msg))
	}
}

func (v *validator) objectMatch(path *field.Path, m *ObjectMatch) {
	if strings.ContainsAny(m.Name, "*/") {
		v.add(field.Invalid(path.Child("name"), m.Name, "must be the name of one object"))
	}
	if m.Namespace != "" {
		v.check(path.Child("namespace"), m.Namespace, content.IsDNS1123Label)
	}
	if _, err := labels.Parse(m.LabelSelector); err != nil {
		v.add(field.Invalid(path.Child("labelSelector"), m.LabelSelector, err.Error()))
	}
}
