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

// Type selects the resources that a document lists, and which status it shows for them.
type Type string

// The types of a query.
const (
	// TypeRsync lists the resources in the context, with their rsync status.
	TypeRsync Type = "rsync"
	// TypeCluster lists the resources in the context and those in the clusters, with their presence.
	TypeCluster Type = "cluster"
	// TypeAll lists the same resources as TypeCluster, with both.
	TypeAll Type = "all"
)

// Output selects how much a document shows.
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

// The outputs of older designs. Each stands for several parameters.
const (
	outputRsync = "rsync"
	outputSmall = "small"
	outputFull  = "full"
)

// DialectEMCO is the value of the parameter dialect that asks for the answers of EMCO 22.12.
const DialectEMCO = "22.12"

// The values of the parameter status of EMCO 22.12.
const (
	statusDeployed = "deployed"
	statusReady    = "ready"
)

// The names of the parameters. Only EMCO 22.12 has the last four.
const (
	parameterApp      = "app"
	parameterCluster  = "cluster"
	parameterDialect  = "dialect"
	parameterHealth   = "health"
	parameterInstance = "instance"
	parameterOutput   = "output"
	parameterResource = "resource"
	parameterType     = "type"

	parameterApps      = "apps"
	parameterClusters  = "clusters"
	parameterResources = "resources"
	parameterStatus    = "status"
)

const (
	// MaxFilters is the maximum number of values of a filter.
	MaxFilters = 100
	// maxResourceName is the maximum length of an object's name, in bytes: that of a DNS subdomain, the longest in Kubernetes.
	maxResourceName = 253
	// maxEcho is the maximum length of the part of a value that an error repeats, in bytes.
	maxEcho = 200
)

// Query holds the parsed parameters of a request. The zero value is not a valid query; ParseQuery returns a valid one.
type Query struct {
	// Type is TypeRsync by default.
	Type Type
	// Output is OutputAll by default.
	Output Output
	// Health adds the health to the document, and to its apps, clusters and resources.
	Health bool
	// Apps, Clusters (<provider>+<cluster>) and Resources (names of objects) are filters. The query selects a resource that matches
	// all three. A filter without values matches everything. The values are sorted and unique.
	Apps, Clusters, Resources []string
	// Instance is the id of the requested context; empty for the current one.
	Instance string
	// ListInstances requests only the ids of all contexts.
	ListInstances bool
	// EMCO is set when the request uses the dialect of EMCO 22.12; nil for a Document.
	EMCO *EMCOQuery
}

// EMCOQuery holds the parameters of a Query that only the dialect of EMCO 22.12 has.
type EMCOQuery struct {
	// Status is deployed or ready; empty when type determines the status that the document shows.
	Status string
	// List is apps, clusters or resources when the request is only for their names; otherwise empty.
	List string
}

// ParameterError describes an invalid parameter of a request. Its text is for the client.
type ParameterError struct {
	// Parameter is the name in the request, cut when it is long.
	Parameter string
	// Value is the value in the request, cut when it is long.
	Value string
	// Problem describes the problem, such as "is unknown".
	Problem string
	// Allowed describes the allowed values.
	Allowed string
}

// Error returns the error in one line.
func (e *ParameterError) Error() string {
	return fmt.Sprintf("query parameter %q with value %q %s; allowed: %s", e.Parameter, e.Value, e.Problem, e.Allowed)
}

// newParameterError returns a ParameterError. It cuts the parameter and the value to maxEcho.
func newParameterError(parameter, value, problem, allowed string) error {
	return &ParameterError{Parameter: shorten(parameter), Value: shorten(value), Problem: problem, Allowed: allowed}
}

func shorten(text string) string { return healthscope.Shorten(text, maxEcho+len("...")) }

// Parameters returns the sorted names of the parameters that ParseQuery accepts without dialect, and "dialect" itself.
func Parameters() []string {
	return []string{
		parameterApp, parameterCluster, parameterDialect, parameterHealth, parameterInstance, parameterOutput, parameterResource, parameterType,
	}
}

// EMCOParameters returns the sorted names of the parameters that only the dialect of EMCO 22.12 has.
func EMCOParameters() []string {
	return []string{parameterApps, parameterClusters, parameterResources, parameterStatus}
}

// Outputs returns the values of the parameter output. Those of older designs come last.
func Outputs() []string {
	return []string{string(OutputSummary), string(OutputAll), string(OutputDetail), outputRsync, outputSmall, outputFull}
}

// Types returns the values of the parameter type.
func Types() []string { return []string{string(TypeRsync), string(TypeCluster), string(TypeAll)} }

// ParseQuery parses the parameters of a status request, which are url.Values: type, output, app, cluster, resource,
// instance and health, with the values and defaults of Query. It also accepts the outputs of EMCO's first designs:
// output=rsync means type=rsync with output=detail. output=small and output=full mean health=true, and type=all unless a type
// is given, with output=all and output=detail respectively.
//
// app, cluster and resource may each be given up to MaxFilters times. instance without a value requests the list of instances,
// and must be the only parameter. ParseQuery rejects any other parameter that is unknown, repeated, empty or contradictory
// with a *ParameterError for the first one by name. It checks for contradictions last.
//
// With dialect=22.12, the parameters are those of EMCO 22.12. Then status, which is deployed or ready, takes precedence over type. apps,
// clusters and resources request names, and their values are ignored. ParseQuery rejects other forms of the status design.
func ParseQuery(values map[string][]string) (Query, error) {
	q, known := Query{Type: TypeRsync, Output: OutputAll}, Parameters()
	if _, emco := values[parameterDialect]; emco {
		q.EMCO = &EMCOQuery{}
		known = slices.DeleteFunc(slices.Concat(known, EMCOParameters()), func(name string) bool { return name == parameterHealth })
		slices.Sort(known)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch text := strings.Join(values[name], ","); {
		case slices.Contains(known, name):
		case slices.Contains(EMCOParameters(), name):
			return Query{}, newParameterError(name, text, "is one of EMCO 22.12", "it, with dialect="+DialectEMCO)
		default:
			return Query{}, newParameterError(name, text, "is unknown", strings.Join(known, ", "))
		}
		if err := q.set(name, values[name]); err != nil {
			return Query{}, q.inWordsOfEMCO(name, err)
		}
	}
	if q.EMCO != nil {
		q.setEMCO(values)
		return q, nil
	}
	if q.ListInstances && len(values) > 1 {
		return Query{}, newParameterError(parameterInstance, "", "asks for the list of instances, and other parameters are given", "an id, or no other parameter")
	}
	if err := q.expandOutput(values); err != nil {
		return Query{}, err
	}
	return q, nil
}

// set parses the values of a parameter.
func (q *Query) set(name string, values []string) (err error) {
	outputs, types := Outputs(), Types()
	if q.EMCO != nil {
		outputs, types = []string{string(OutputAll), string(OutputSummary), string(OutputDetail)}, []string{string(TypeRsync), string(TypeCluster)}
	}
	switch name {
	case parameterApp:
		q.Apps, err = parseFilter(name, values, checkApp)
	case parameterCluster:
		q.Clusters, err = parseFilter(name, values, checkCluster)
	case parameterResource:
		q.Resources, err = parseFilter(name, values, checkResource)
	case parameterDialect:
		_, err = parseEnum[string](name, values, DialectEMCO)
	case parameterHealth:
		var value string
		value, err = parseEnum[string](name, values, "true", "false")
		q.Health = value == "true"
	case parameterInstance:
		err = q.setInstance(values)
	case parameterOutput:
		q.Output, err = parseEnum[Output](name, values, outputs...)
	case parameterType:
		q.Type, err = parseEnum[Type](name, values, types...)
	case parameterStatus:
		q.EMCO.Status, err = parseEnum[string](name, values, statusDeployed, statusReady)
	case parameterApps, parameterClusters, parameterResources: // Their values are ignored.
	}
	return err
}

// setEMCO completes a query in the dialect of EMCO 22.12. It resets the parameters that EMCO ignores for a query for names.
func (q *Query) setEMCO(values map[string][]string) {
	switch q.EMCO.Status { // It takes precedence over type.
	case statusDeployed:
		q.Type = TypeRsync
	case statusReady:
		q.Type = TypeCluster
	}
	for _, name := range []string{parameterApps, parameterClusters, parameterResources} {
		if _, ok := values[name]; ok {
			q.EMCO.List = name
			break
		}
	}
	if q.EMCO.List == "" {
		return
	}
	q.Output, q.Resources = OutputAll, nil
	if q.EMCO.List != parameterResources {
		q.Type, q.Clusters = TypeRsync, nil
	}
	if q.EMCO.List == parameterApps {
		q.Apps = nil
	}
}

// inWordsOfEMCO returns the error for a value, which in the dialect of EMCO 22.12 begins with EMCO's words.
func (q *Query) inWordsOfEMCO(name string, err error) error {
	if q.EMCO == nil {
		return err
	}
	prefix := "Invalid query " + name
	switch name {
	case parameterApp, parameterCluster:
		prefix = "Invalid " + name + " query"
	case parameterResource:
		prefix = "Invalid resources query"
	}
	return fmt.Errorf("%s: %w", prefix, err)
}

// expandOutput replaces an output that stands for several parameters with those parameters.
func (q *Query) expandOutput(values map[string][]string) error {
	_, hasType := values[parameterType]
	_, hasHealth := values[parameterHealth]
	output := string(q.Output)
	switch {
	case output == outputRsync && q.Type != TypeRsync:
		return newParameterError(parameterOutput, output, "contradicts type="+string(q.Type), "type=rsync, or no type")
	case output == outputRsync:
		q.Output = OutputDetail
		return nil
	case output != outputSmall && output != outputFull:
		return nil
	case hasHealth && !q.Health:
		return newParameterError(parameterOutput, output, "contradicts health=false", "health=true, or no health")
	case !hasType:
		q.Type = TypeAll
	}
	q.Health, q.Output = true, OutputAll
	if output == outputFull {
		q.Output = OutputDetail
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

func parseEnum[T ~string](parameter string, values []string, words ...string) (T, error) {
	allowed := strings.Join(words, ", ")
	value, err := singleValue(parameter, values, allowed)
	if err == nil && !slices.Contains(words, value) {
		err = newParameterError(parameter, value, "cannot be used", allowed)
	}
	return T(value), err
}

func (q *Query) setInstance(values []string) error {
	const allowed = "the id of a context, or no value for the list of them"
	value, err := singleValue(parameterInstance, values, allowed)
	switch {
	case err != nil:
		return err
	case value == "" && q.EMCO != nil:
		return newParameterError(parameterInstance, "", "cannot be used", "the id of a context")
	case value != "" && len(validation.IsValidLabelValue(value)) > 0:
		return newParameterError(parameterInstance, value, "cannot be the id of a context", allowed)
	}
	q.Instance, q.ListInstances = value, value == ""
	return nil
}

// parseFilter returns the sorted, unique values of a filter. check reports whether a value can be a name, and returns what is allowed.
func parseFilter(parameter string, values []string, check func(string) (ok bool, allowed string)) ([]string, error) {
	if len(values) > MaxFilters {
		return nil, newParameterError(parameter, strings.Join(values[:3], ","), fmt.Sprintf("is given %d times", len(values)), "1 to "+strconv.Itoa(MaxFilters)+" values")
	}
	for _, value := range values {
		if ok, allowed := check(value); !ok {
			return nil, newParameterError(parameter, value, "cannot be a name", allowed)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(values))), nil
}

// isLabel reports whether EMCO accepts a text as the name of an app, a provider or a cluster. It must be a valid label value.
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

// filterMatches reports whether a filter matches a name.
func filterMatches(filter []string, name string) bool {
	if len(filter) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(filter, name)
	return ok
}

// usesClusters reports whether the document depends on the state of the clusters.
func (q Query) usesClusters() bool { return !q.ListInstances && (q.Type != TypeRsync || q.Health) }

// filtered reports whether the query has a filter.
func (q Query) filtered() bool { return len(q.Apps)+len(q.Clusters)+len(q.Resources) > 0 }
