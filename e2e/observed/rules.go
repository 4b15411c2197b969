package observed

import (
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// Rules is a file of Prometheus's rules.
type Rules struct {
	// Groups are its groups.
	Groups []struct {
		// Name is the name of the group.
		Name string `json:"name"`
		// Rules are its rules.
		Rules []Rule `json:"rules"`
	} `json:"groups"`
}

// Rule is an alert.
type Rule struct {
	// Alert is the name of the alert.
	Alert string `json:"alert"`
	// Expr is the query. Each of its results is an alert.
	Expr string `json:"expr"`
	// For is how long a result must exist before the alert fires. KeepFiringFor is how long the alert continues to fire without
	// a result. Both are in Prometheus's notation.
	For           string `json:"for,omitempty"`
	KeepFiringFor string `json:"keep_firing_for,omitempty"`
	// Labels and Annotations are those of the alert.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ReadRules reads a file of rules, strictly.
func ReadRules(text []byte) (Rules, error) {
	var rules Rules
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		return Rules{}, fmt.Errorf("cannot read rules: %w", err)
	}
	return rules, nil
}

var (
	window   = regexp.MustCompile(`\[[0-9]+m\]`)
	subquery = regexp.MustCompile(`\[[0-9]+d:[0-9]+m\]`)
)

// Hasten returns rules that do not make a test wait: alerts fire after two seconds, KeepFiringFor is one second where it was
// set, windows in minutes become ten seconds, and subqueries over days become one hour with a step of one second.
func Hasten(rules Rules) ([]byte, error) {
	for _, g := range rules.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			r.For = "2s"
			if r.KeepFiringFor != "" {
				r.KeepFiringFor = "1s"
			}
			r.Expr = subquery.ReplaceAllString(window.ReplaceAllString(r.Expr, "[10s]"), "[1h:1s]")
		}
	}
	return yaml.Marshal(rules)
}
