package status

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/healthscope/healthscope/healthscope"
)

// Type says which resources a document lists, and by what.
type Type string

// The types of a query.
const (
	// TypeRsync lists the resources in the context, with what rsync did about them.
	TypeRsync Type = "rsync"
	// TypeCluster lists the resources in the context and those that are in the clusters, with whether they are there.
	TypeCluster Type = "cluster"
	// TypeAll lists the same with both.
	TypeAll Type = "all"
)

// Output is how much a document shows.
type Output string

// The outputs of a query.
const (
	// OutputSummary has counts, and no resources.
	OutputSummary Output = "summary"
	// OutputAll lists resources by app and cluster.
	OutputAll Output = "all"
	// OutputDetail adds the objects themselves.
	OutputDetail Output = "detail"
)

// Outputs of older designs, which stand for several parameters together.
const (
	outputRsync = "rsync"
	outputSmall = "small"
	outputFull  = "full"
)

// The names of the parameters.
const (
	parameterApp      = "app"
	parameterCluster  = "cluster"
	parameterDialect  = "dialect"
	parameterHealth   = "health"
	parameterInstance = "instance"
	parameterOutput   = "output"
	parameterResource = "resource"
	parameterType     = "type"
)

const (
	// MaxFilters is how many values a filter may have.
	MaxFilters = 100
	// maxResourceName is how long the name of an object may be: that of a DNS subdomain, the longest there is in Kubernetes.
	maxResourceName = 253
	// maxEcho is how much of a value an error repeats, in bytes.
	maxEcho = 200
)

// Query is what a request asks for. The zero value is no query; ParseQuery makes one.
type Query struct {
	// Type is TypeRsync unless the request says otherwise.
	Type Type
	// Output is OutputAll unless the request says otherwise.
	Output Output
	// Health adds state, reason, since and age to everything.
	Health bool
	// Apps, Clusters (<provider>+<cluster>) and Resources (names of objects) are what a resource must be of, each one of
	// them; without values everything is. They are sorted, and name nothing twice.
	Apps, Clusters, Resources []string
	// Instance is the id of the context that is asked for; empty for the one in force.
	Instance string
	// ListInstances asks for the ids of all contexts instead, and for nothing else.
	ListInstances bool
	// EMCO is set for an answer of EMCO 22.12; nil for a Document.
	EMCO *EMCOQuery
}

// ParameterError says what is wrong with a parameter of a request. Its text is meant for the caller.
type ParameterError struct {
	// Parameter is the name as it was sent.
	Parameter string
	// Value is the value as it was sent, cut when it is long.
	Value string
	// Problem says what is wrong, such as "is unknown".
	Problem string
	// Allowed says what can be used instead.
	Allowed string
}

// Error returns everything in one line.
func (e *ParameterError) Error() string {
	return fmt.Sprintf("query parameter %q with value %q %s; allowed: %s", e.Parameter, e.Value, e.Problem, e.Allowed)
}

// newParameterError returns a ParameterError for a value, of which no more is repeated than is decent.
func newParameterError(parameter, value, problem, allowed string) error {
	return &ParameterError{Parameter: shorten(parameter), Value: shorten(value), Problem: problem, Allowed: allowed}
}

func shorten(text string) string { return healthscope.Shorten(text, maxEcho+len("...")) }

// parameterParser reads one parameter into a query.
type parameterParser func(q *Query, values []string) error

// parameters are the parameters there are.
var parameters = map[string]parameterParser{
	parameterApp: func(q *Query, values []string) (err error) {
		q.Apps, err = parseFilter(parameterApp, values, checkApp)
		return
	},
	parameterCluster: func(q *Query, values []string) (err error) {
		q.Clusters, err = parseFilter(parameterCluster, values, checkCluster)
		return
	},
	parameterResource: func(q *Query, values []string) (err error) {
		q.Resources, err = parseFilter(parameterResource, values, checkResource)
		return
	},
	parameterHealth: func(q *Query, values []string) error {
		value, err := parseEnum(parameterHealth, values, "true", "false")
		q.Health = value == "true"
		return err
	},
	parameterInstance: parseInstance,
	parameterOutput: func(q *Query, values []string) error {
		value, err := parseEnum(parameterOutput, values, Outputs()...)
		q.Output = Output(value)
		return err
	},
	parameterType: func(q *Query, values []string) error {
		value, err := parseEnum(parameterType, values, Types()...)
		q.Type = Type(value)
		return err
	},
}

// Parameters returns the names of the parameters that ParseQuery takes without dialect, and that name, sorted.
func Parameters() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(parameters)), parameterDialect)))
}

// Outputs returns the values of the parameter output, those of older designs last.
func Outputs() []string {
	return []string{string(OutputSummary), string(OutputAll), string(OutputDetail), outputRsync, outputSmall, outputFull}
}

// Types returns the values of the parameter type.
func Types() []string { return []string{string(TypeRsync), string(TypeCluster), string(TypeAll)} }

// ParseQuery reads the parameters of a request for a status, which are url.Values: type, output, app, cluster, resource,
// instance and health, with the values and defaults of Query. The outputs of EMCO's first designs are taken too:
// output=rsync is type=rsync with output=detail; small and full are type=all, unless a type is given, and health=true,
// with output=all and detail.
//
// app, cluster and resource may be given several times, up to a hundred. A bare instance, without a value, asks for the
// list of instances and must be alone. Everything else that is unknown, repeated, empty or contradictory is refused with a
// *ParameterError, the first one by name.
//
// With dialect=22.12, the parameters are those of EMCO 22.12. Then status, which is deployed or ready, is taken before type, and apps,
// clusters and resources, whatever their value, ask for names. Other forms of the status design are refused.
func ParseQuery(values map[string][]string) (Query, error) {
	if _, ok := values[parameterDialect]; ok {
		return parseEMCOQuery(values)
	}
	var q Query
	for _, name := range slices.Sorted(maps.Keys(values)) {
		read, ok := parameters[name]
		if !ok && slices.Contains(EMCOParameters(), name) {
			return Query{}, newParameterError(name, strings.Join(values[name], ","), "is one of EMCO 22.12", "it, with dialect="+DialectEMCO)
		}
		if !ok {
			return Query{}, newParameterError(name, strings.Join(values[name], ","), "is unknown", strings.Join(Parameters(), ", "))
		}
		if err := read(&q, values[name]); err != nil {
			return Query{}, err
		}
	}
	if q.ListInstances && len(values) > 1 {
		return Query{}, newParameterError(parameterInstance, "", "asks for the list of instances, and other parameters are given", "an id, or no other parameter")
	}
	if err := q.expandOutput(values); err != nil {
		return Query{}, err
	}
	if q.Type == "" {
		q.Type = TypeRsync
	}
	if q.Output == "" {
		q.Output = OutputAll
	}
	return q, nil
}

// expandOutput replaces an output that stands for several parameters by these.
func (q *Query) expandOutput(values map[string][]string) error {
	switch string(q.Output) {
	case outputRsync:
		if q.Type != "" && q.Type != TypeRsync {
			return newParameterError(parameterOutput, outputRsync, "contradicts type="+string(q.Type), "type=rsync, or no type")
		}
		q.Type, q.Output = TypeRsync, OutputDetail
	case outputSmall, outputFull:
		if _, isSet := values[parameterHealth]; isSet && !q.Health {
			return newParameterError(parameterOutput, string(q.Output), "contradicts health=false", "health=true, or no health")
		}
		if q.Type == "" {
			q.Type = TypeAll
		}
		detail := q.Output == outputFull
		q.Health, q.Output = true, OutputAll
		if detail {
			q.Output = OutputDetail
		}
	}
	return nil
}

// singleValue returns the one value of a parameter.
func singleValue(parameter string, values []string, allowed string) (string, error) {
	if len(values) != 1 {
		return "", newParameterError(parameter, strings.Join(values, ","), fmt.Sprintf("is given %d times", len(values)), "one value: "+allowed)
	}
	return values[0], nil
}

func parseEnum(parameter string, values []string, words ...string) (string, error) {
	allowed := strings.Join(words, ", ")
	value, err := singleValue(parameter, values, allowed)
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, value) {
		return "", newParameterError(parameter, value, "cannot be used", allowed)
	}
	return value, nil
}

func parseInstance(q *Query, values []string) error {
	const allowed = "the id of a context, or no value for the list of them"
	value, err := singleValue(parameterInstance, values, allowed)
	if err != nil {
		return err
	}
	if value != "" && len(validation.IsValidLabelValue(value)) > 0 {
		return newParameterError(parameterInstance, value, "cannot be the id of a context", allowed)
	}
	q.Instance, q.ListInstances = value, value == ""
	return nil
}

// parseFilter returns the values of a filter, sorted. check reports whether a value can be a name, and what can.
func parseFilter(parameter string, values []string, check func(string) (ok bool, allowed string)) ([]string, error) {
	if len(values) == 0 || len(values) > MaxFilters {
		return nil, newParameterError(parameter, strings.Join(values[:min(len(values), 3)], ","), fmt.Sprintf("is given %d times", len(values)), "1 to "+strconv.Itoa(MaxFilters)+" values")
	}
	for _, value := range values {
		if ok, allowed := check(value); !ok {
			return nil, newParameterError(parameter, value, "cannot be a name", allowed)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(values))), nil
}

// isLabel reports whether EMCO takes a text for the name of an app, a provider or a cluster: if it can be the value of a label.
func isLabel(text string) bool { return text != "" && len(validation.IsValidLabelValue(text)) == 0 }

func checkApp(value string) (ok bool, allowed string) {
	return isLabel(value), "1 to 63 letters, digits, -, _ and ."
}

func checkCluster(value string) (ok bool, allowed string) {
	provider, cluster, ok := strings.Cut(value, "+")
	return ok && isLabel(provider) && isLabel(cluster), "<provider>+<cluster>, where + is sent as %2B"
}

func checkResource(value string) (ok bool, allowed string) {
	bad := func(r rune) bool { return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r) }
	ok = value != "" && len(value) <= maxResourceName && utf8.ValidString(value) && !strings.ContainsFunc(value, bad)
	return ok, "the name of an object, at most " + strconv.Itoa(maxResourceName) + " bytes without / and blanks"
}

// filterMatches reports whether a filter lets a name through.
func filterMatches(filter []string, name string) bool {
	if len(filter) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(filter, name)
	return ok
}

// usesClusters reports whether the answer depends on what is in the clusters.
func (q Query) usesClusters() bool { return !q.ListInstances && (q.Type != TypeRsync || q.Health) }

// filtered reports whether there is a filter.
func (q Query) filtered() bool { return len(q.Apps)+len(q.Clusters)+len(q.Resources) > 0 }
