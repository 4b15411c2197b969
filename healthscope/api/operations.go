package api

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// Operation is the description of a path in openapi.json. The table of routes, from which the router is made, contains it.
type Operation struct {
	// Path is the path in the syntax of http.ServeMux, which is that of OpenAPI.
	Path string
	// Method is POST for operations that change something. Default: GET, and HEAD too.
	Method string
	// ID is the operationId of GET or POST, and Tag the group that the operation belongs to.
	ID, Tag string
	// Summary is the summary of the response, and Description has the details.
	Summary, Description string
	// Parameters are the query parameters, and PathParameters the parts of the path that callers choose.
	Parameters, PathParameters []Parameter
	// Body is a value of the type of the JSON body of the request; nil when the body is ignored.
	Body any
	// MediaTypes are the media types of the response, the default first and that of a stream last. Without any, the response has no content.
	MediaTypes []string
	// Document is a value of the type of the JSON response; nil for the OpenAPI document itself.
	Document any
	// EMCO are values of the types of the responses in the dialect of EMCO 22.12.
	EMCO []any
	// Text is the name in Strings of the response as text.
	Text string
	// Anonymous is true when callers need no token.
	Anonymous bool
	// Constant is true when the response depends on nothing that can be unavailable.
	Constant bool
}

// Parameter is a parameter of a path or of a query.
type Parameter struct {
	// Name is the name of the parameter.
	Name string
	// Description describes the parameter.
	Description string
	// Schema is the name of its values in Strings; empty for any string.
	Schema string
	// MaxItems is the maximum number of values; 0 when it has exactly one.
	MaxItems int
	// Maximum is the maximum of a number whose minimum is 0; 0 when the value is not a number.
	Maximum int
	// AllowEmpty is true when the value may be empty.
	AllowEmpty bool
}

// StringSchema describes the valid values of a string, with the keywords of JSON Schema.
type StringSchema struct {
	Description          string
	Enum                 []string
	Pattern, Format      string
	MinLength, MaxLength int
}

// Operations returns the paths that are served.
func Operations() []Operation {
	var all []Operation
	for _, rt := range newHandler(Options{}).routes() {
		o := rt.Operation
		o.Anonymous = rt.access == nil
		if rt.watch != nil {
			o.MediaTypes = append(slices.Clone(o.MediaTypes), typeStream)
		}
		for _, match := range pathParameterPattern.FindAllStringSubmatch(o.Path, -1) {
			o.PathParameters = append(o.PathParameters, pathParameters[match[1]])
		}
		all = append(all, o)
	}
	return all
}

// pathParameterPattern matches the parts of a pattern that callers choose.
var pathParameterPattern = regexp.MustCompile(`{(\w+)}`)

// parameterNames returns the names of parameters.
func parameterNames(parameters []Parameter) []string {
	all := make([]string, 0, len(parameters))
	for _, p := range parameters {
		all = append(all, p.Name)
	}
	return all
}

// pathParameters are the parts of paths that callers choose, by their names.
var pathParameters = map[string]Parameter{
	"name":      {Name: "name", Schema: "ScopeName", Description: "The name of the scope."},
	"namespace": {Name: "namespace", Schema: "NamespaceName", Description: "The namespace of the scope."},
	"project":   {Name: "project", Schema: "PathName", Description: "The project of the deployment intent group."},
	"app":       {Name: "app", Schema: "PathName", Description: "Its composite app."},
	"version":   {Name: "version", Schema: "PathName", Description: "The version of the composite app."},
	"group":     {Name: "group", Schema: "PathName", Description: "The deployment intent group."},
	"provider":  {Name: "provider", Schema: "PathName", Description: "The provider of the cluster."},
	"cluster":   {Name: "cluster", Schema: "PathName", Description: "The cluster, without its provider."},
	"id":        {Name: "id", Schema: "InstanceName", Description: "The id of the instance, which is the value of a label."},
}

// Query parameters of scopes.
var (
	namespaceParameter = Parameter{Name: parameterNamespace, Schema: "NamespaceName", Description: "Only scopes of this namespace. Without it, those of all namespaces."}
	watchParameter     = Parameter{
		Name: parameterWatch, Schema: "Boolean",
		Description: "`true` answers with server-sent events: first `snapshot` with what is answered without it; then `scope` with a scope that has come or changed, in short where many are asked for and else in full; and `deleted` with the name and namespace of one that has gone or is not selected any more. `problem` ends the stream: the caller may not read it any more. Default: `false`.",
	}
)

// pageParameters are the query parameters of a list in pages.
var pageParameters = []Parameter{
	{Name: parameterContinue, AllowEmpty: true, Description: "`metadata.continue` of the page before, to get the next one; `namespace`, `labelSelector` and `health` must be the same. It does not expire. Not with `watch=true`."},
	{Name: parameterHealth, Schema: "Health", Description: "Only scopes of this health."},
	{Name: parameterLabelSelector, AllowEmpty: true, Description: "Only scopes whose labels match, in the syntax of Kubernetes: `team=a,tier in (web,db),!canary`."},
	{Name: parameterLimit, Maximum: maxLimit, Description: "How many scopes a page has at most. Default: `0`, which is all. Not with `watch=true`."},
	namespaceParameter,
	watchParameter,
}

// documentParameters are the query parameters of status documents.
var documentParameters = []Parameter{
	{Name: "app", Schema: "AppName", MaxItems: status.MaxFilters, Description: "Only resources of these apps."},
	{Name: "apps", AllowEmpty: true, Description: "As EMCO 22.12: the names of the apps of a group, whatever the value. Only in its dialect."},
	{Name: "cluster", Schema: "ClusterName", MaxItems: status.MaxFilters, Description: "Only resources in these clusters, `<provider>+<cluster>`, where `+` is sent as `%2B`."},
	{Name: "clusters", AllowEmpty: true, Description: "As EMCO 22.12: the names of the clusters of a group by app, whatever the value. Only in its dialect."},
	{
		Name: parameterDialect, Schema: "Dialect",
		Description: "`22.12` answers as EMCO 22.12 does, in `" + typeEMCO + "` and with its parameters, as that media type in the header Accept does. Errors are text then.",
	},
	{Name: "health", Schema: "Boolean", Description: "`true` adds state, reason, since and age to everything. Default: `false`."},
	{Name: "instance", Schema: "ContextID", AllowEmpty: true, Description: "The id of a context: that instance. Without a value, the list of all instances, and nothing else may be asked for. Default: the one in force."},
	{Name: "output", Schema: "Output", Description: "How much is shown. Default: `all`."},
	{Name: "resource", Schema: "ResourceName", MaxItems: status.MaxFilters, Description: "Only resources of these names."},
	{Name: "resources", AllowEmpty: true, Description: "As EMCO 22.12: the names of the resources of a group by app and cluster, whatever the value. Only in its dialect."},
	{Name: "status", Schema: "EMCOStatus", Description: "As EMCO 22.12: what rsync did, or how resources are. Only in its dialect."},
	{Name: "type", Schema: "DocumentType", Description: "Which resources are listed, and with which status. Default: `rsync`."},
}

// healthValues are the values of a scope's health.
var healthValues = []string{string(corev1alpha2.Healthy), string(corev1alpha2.Unhealthy), string(corev1alpha2.UnknownHealth)}

// Strings returns the forms of strings, by their names. A field of a document refers to one with the tag openapi.
func Strings() map[string]StringSchema {
	const (
		label     = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
		subdomain = `^` + label + `(\.` + label + `)*$`
	)
	states := make([]string, 0, len(healthscope.States()))
	for _, s := range healthscope.States() {
		states = append(states, string(s))
	}
	return map[string]StringSchema{
		"ScopeName":     {Description: "The name of a HealthScope: a DNS subdomain (RFC 1123).", MinLength: 1, MaxLength: validation.DNS1123SubdomainMaxLength, Pattern: subdomain},
		"NamespaceName": {Description: "The name of a namespace: a DNS label (RFC 1123).", MinLength: 1, MaxLength: validation.DNS1123LabelMaxLength, Pattern: "^" + label + "$"},
		"PathName":      {Description: "The name of something that EMCO knows.", MinLength: 1, MaxLength: maxPathName, Pattern: `^[^/\x00-\x1f\x7f-\x9f]+$`},
		"InstanceName":  {Description: "The id of an instance of k8splugin.", MinLength: 1, MaxLength: validation.LabelValueMaxLength, Pattern: "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"},
		"AppName":       {Description: "The name of an app.", MinLength: 1, MaxLength: validation.DNS1123LabelMaxLength},
		"ClusterName":   {Description: "The name of a cluster: `<provider>+<cluster>`.", MinLength: 3, MaxLength: 2*validation.DNS1123LabelMaxLength + 1},
		"ResourceName":  {Description: "The name of a Kubernetes object.", MinLength: 1, MaxLength: validation.DNS1123SubdomainMaxLength},
		"ContextID":     {Description: "The id of a context.", MaxLength: validation.DNS1123LabelMaxLength},
		"Boolean":       {Description: "A switch.", Enum: []string{"true", "false"}},
		"Output":        {Description: "How much a status document shows.", Enum: status.Outputs()},
		"Dialect":       {Description: "A release of EMCO.", Enum: []string{status.DialectEMCO}},
		"EMCOStatus":    {Description: "What EMCO 22.12 shows of resources.", Enum: []string{"deployed", "ready"}},
		"DocumentType":  {Description: "Which resources a status document lists.", Enum: status.Types()},
		"Health":        {Description: "`unknown` means that only members that cannot be judged are in the way of `healthy`, or that the scope has not been evaluated yet.", Enum: healthValues},
		"State":         {Description: "The state of a member, or the worst state of many. `Unknown` is what cannot be judged: it is never taken for `Ready` or for `Failed`.", Enum: states},
		"Presence":      {Description: "Whether an object is there.", Enum: []string{string(status.Present), string(status.NotPresent), string(status.PresenceUnknown)}},
		"Ratio":         {Description: "A number of a number.", Pattern: "^[0-9]+/[0-9]+$"},
		"HealthWord":    {Description: "The health in one word and a line feed. It is `health` of the JSON.", Enum: []string{string(corev1alpha2.Healthy) + "\n", string(corev1alpha2.Unhealthy) + "\n", string(corev1alpha2.UnknownHealth) + "\n"}},
		"HealthLines":   {Description: "A line for each scope: namespace/name, a space, and its health in one word, as in the answer for one.", Pattern: `^([^ /\n]+/[^ /\n]+ (healthy|unhealthy|unknown)\n)*$`},
		"Events":        {Description: "Server-sent events, as the HTML standard defines them. The data of each are one line of JSON. Comments show that the stream lives."},
		"ErrorText":     {Description: "What is wrong, for callers who ask in the dialect of EMCO 22.12: `detail` of the problem document.", MinLength: 1},
		"ProbeWord":     {Description: "All is well.", Enum: []string{"ok\n"}},
	}
}
