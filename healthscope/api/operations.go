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
		o.Anonymous = rt.anonymous()
		if rt.streams {
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
	"project":   {Name: "project", Schema: "PathName", Description: "The name of the project."},
	"app":       {Name: "app", Schema: "PathName", Description: "The name of the composite app."},
	"version":   {Name: "version", Schema: "PathName", Description: "The version of the composite app."},
	"group":     {Name: "group", Schema: "PathName", Description: "The name of the deployment intent group."},
	"provider":  {Name: "provider", Schema: "PathName", Description: "The name of the cluster's provider."},
	"cluster":   {Name: "cluster", Schema: "PathName", Description: "The name of the cluster, without its provider."},
	"id":        {Name: "id", Schema: "InstanceName", Description: "The id of the instance: the value of the label `" + status.InstanceLabel + "`."},
}

// Query parameters of scopes.
var (
	namespaceParameter = Parameter{Name: parameterNamespace, Schema: "NamespaceName", Description: "Selects the scopes of one namespace. Default: all namespaces."}
	watchParameter     = Parameter{
		Name: parameterWatch, Schema: "Boolean",
		Description: "With `true`, the response is a stream of server-sent events. The first event is `snapshot`, with the response without `watch`. Then follow `scope`, with a scope that is new or has changed (its summary in a list, otherwise the whole scope), and `deleted`, with name and namespace of a scope that is deleted or no longer selected. `problem` ends the stream, because the caller may no longer read it. Default: `false`.",
	}
)

// pageParameters are the query parameters of a list in pages.
var pageParameters = []Parameter{
	{Name: parameterContinue, AllowEmpty: true, Description: "The value of `metadata.continue` in the previous page. `namespace`, `labelSelector` and `health` must be the same as for that page. The value does not expire. Not allowed with `watch=true`."},
	{Name: parameterHealth, Schema: "Health", Description: "Selects the scopes with this health."},
	{Name: parameterLabelSelector, AllowEmpty: true, Description: "Selects scopes by their labels, in the syntax of Kubernetes, such as `team=a,tier in (web,db),!canary`."},
	{Name: parameterLimit, Maximum: maxLimit, Description: "The maximum number of scopes in a page. Default: `0`, no maximum. Not allowed with `watch=true`."},
	namespaceParameter,
	watchParameter,
}

// documentParameters are the query parameters of status documents.
var documentParameters = []Parameter{
	{Name: "app", Schema: "AppName", MaxItems: status.MaxFilters, Description: "Selects the resources of these apps."},
	{Name: "apps", AllowEmpty: true, Description: "Requests the names of the apps of a group, as in EMCO 22.12. The value is ignored. Allowed only in that dialect."},
	{Name: "cluster", Schema: "ClusterName", MaxItems: status.MaxFilters, Description: "Selects the resources in these clusters, each as `<provider>+<cluster>`, where `+` is sent as `%2B`."},
	{Name: "clusters", AllowEmpty: true, Description: "Requests the names of the clusters of a group by app, as in EMCO 22.12. The value is ignored. Allowed only in that dialect."},
	{
		Name: parameterDialect, Schema: "Dialect",
		Description: "With `22.12`, the request has the parameters of EMCO 22.12, and the response has its form, in `" + typeEMCO + "`. That media type in the header `Accept` has the same effect. Errors are then text.",
	},
	{Name: "health", Schema: "Boolean", Description: "With `true`, the document has the health of everything in it: state, reason, since and age. Default: `false`."},
	{Name: "instance", Schema: "ContextID", AllowEmpty: true, Description: "The id of the context to show. Without a value, the response is the list of all contexts, and no other parameter is allowed. Default: the context in force."},
	{Name: "output", Schema: "Output", Description: "How much the document shows. Default: `all`."},
	{Name: "resource", Schema: "ResourceName", MaxItems: status.MaxFilters, Description: "Selects the resources with these names."},
	{Name: "resources", AllowEmpty: true, Description: "Requests the names of the resources of a group by app and cluster, as in EMCO 22.12. The value is ignored. Allowed only in that dialect."},
	{Name: "status", Schema: "EMCOStatus", Description: "Selects what is shown of resources, as in EMCO 22.12: what rsync did with them, or their status in the cluster. Allowed only in that dialect."},
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
		"PathName":      {Description: "The name of an object in EMCO, such as a project or a cluster.", MinLength: 1, MaxLength: maxPathName, Pattern: `^[^/\x00-\x1f\x7f-\x9f]+$`},
		"InstanceName":  {Description: "The id of an instance of k8splugin.", MinLength: 1, MaxLength: validation.LabelValueMaxLength, Pattern: "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"},
		"AppName":       {Description: "The name of an app.", MinLength: 1, MaxLength: validation.DNS1123LabelMaxLength},
		"ClusterName":   {Description: "The name of a cluster: `<provider>+<cluster>`.", MinLength: 3, MaxLength: 2*validation.DNS1123LabelMaxLength + 1},
		"ResourceName":  {Description: "The name of a Kubernetes object.", MinLength: 1, MaxLength: validation.DNS1123SubdomainMaxLength},
		"ContextID":     {Description: "The id of a context.", MaxLength: validation.DNS1123LabelMaxLength},
		"Boolean":       {Description: "A boolean.", Enum: []string{"true", "false"}},
		"Output":        {Description: "How much a status document shows.", Enum: status.Outputs()},
		"Dialect":       {Description: "A release of EMCO.", Enum: []string{status.DialectEMCO}},
		"EMCOStatus":    {Description: "The status of resources that EMCO 22.12 shows.", Enum: []string{"deployed", "ready"}},
		"DocumentType":  {Description: "Which resources a status document lists.", Enum: status.Types()},
		"Health":        {Description: "The health of a scope. `unknown` means that only members that cannot be judged, or apps without members, keep the scope from being `healthy`, that the scope has no members, or that it has not been judged since it was created or changed.", Enum: healthValues},
		"State":         {Description: "The state of a member, or the worst state of several. `Unknown` means that the member cannot be judged; it never counts as `Ready` or `Failed`.", Enum: states},
		"Presence":      {Description: "Whether an object exists in the cluster.", Enum: []string{string(status.Present), string(status.NotPresent), string(status.PresenceUnknown)}},
		"Ratio":         {Description: "A number, and the total of which it is a part, such as `3/4`.", Pattern: "^[0-9]+/[0-9]+$"},
		"HealthWord":    {Description: "The health of the scope and a line feed. It is the value of `health` in the JSON response.", Enum: []string{string(corev1alpha2.Healthy) + "\n", string(corev1alpha2.Unhealthy) + "\n", string(corev1alpha2.UnknownHealth) + "\n"}},
		"HealthLines":   {Description: "A line for each scope, such as `default/vfw healthy`: namespace and name, and the health.", Pattern: `^([^ /\n]+/[^ /\n]+ (healthy|unhealthy|unknown)\n)*$`},
		"Events":        {Description: "Server-sent events, as the HTML standard defines them. The data of each event are one line of JSON. Comments show that the connection is alive."},
		"ErrorText":     {Description: "The error, for requests in the dialect of EMCO 22.12: the `detail` of the problem document.", MinLength: 1},
		"ProbeWord":     {Description: "The check has succeeded.", Enum: []string{"ok\n"}},
	}
}
