package v1alpha1

import (
	"fmt"
	"net/url"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

const (
	// minLimitKiB leaves space for the parts that every bundle must have.
	minLimitKiB = 16
	// maxLimitKiB leaves space for metadata below etcd's limit of 1.5 MiB for a request.
	maxLimitKiB = 1400
	// maxFleetTimeout limits the time until an unreachable cluster is detected.
	maxFleetTimeout = 60
)

// schemaVersion matches the versions of the A&AI schema that have k8s-resource: v24 to v99.
var schemaVersion = regexp.MustCompile(`^v(2[4-9]|[3-9][0-9])$`)

// Validate returns an error for every invalid field of a configuration. The configuration must have its defaults (SetDefaults).
func Validate(c *Configuration) field.ErrorList {
	v := &validator{}
	oneOf(v, field.NewPath("apiVersion"), c.APIVersion, APIVersion)
	oneOf(v, field.NewPath("kind"), c.Kind, Kind)
	policy := field.NewPath("policy")
	v.atLeast(policy.Child("pendingTimeoutSeconds"), c.Policy.PendingTimeoutSeconds, 0)
	v.atLeast(policy.Child("notPresentGraceSeconds"), c.Policy.NotPresentGraceSeconds, 0)
	v.atLeast(policy.Child("noStatusGraceSeconds"), c.Policy.NoStatusGraceSeconds, 0)
	v.atLeast(policy.Child("failureGraceSeconds"), c.Policy.FailureGraceSeconds, 0)
	v.atLeast(policy.Child("recoveryHoldSeconds"), c.Policy.RecoveryHoldSeconds, 0)
	v.monitor(field.NewPath("monitor"), &c.Monitor)
	v.fleet(field.NewPath("fleet"), &c.Fleet)
	v.api(field.NewPath("api"), &c.API)
	v.metrics(field.NewPath("metrics"), &c.Metrics)
	if c.Tracing != nil {
		v.tracing(field.NewPath("tracing"), c.Tracing)
	}
	if c.AppContext != nil {
		v.appContext(field.NewPath("appContext"), c.AppContext)
	}
	if c.Recorder != nil && c.AppContext == nil {
		v.add(field.Forbidden(field.NewPath("recorder"), "needs the section appContext, which says where to save"))
	}
	v.each(field.NewPath("oam", "trustedNamespaces"), c.OAM.TrustedNamespaces, content.IsDNS1123Label)
	if c.OAM.LabelServices && !c.OAM.ApplicationConfigurations {
		v.add(field.Forbidden(field.NewPath("oam", "labelServices"), "needs oam.applicationConfigurations"))
	}
	if c.Rsync.Enabled && c.AppContext == nil {
		v.add(field.Forbidden(field.NewPath("rsync", "enabled"), "requires appContext, the etcd that holds the contexts"))
	}
	oneOf(v, field.NewPath("rsync", "deletionOrder"), c.Rsync.DeletionOrder, DeletionReverse, DeletionListed)
	if c.Rsync.GRPC != nil {
		v.grpc(field.NewPath("rsync", "grpc"), c.Rsync.GRPC)
	}
	v.healthCheckExprs(field.NewPath("healthCheckExprs"), c.HealthCheckExprs)
	if c.Inventory != nil {
		v.inventory(field.NewPath("inventory"), c.Inventory)
	}
	return v.errs
}

// validator collects the errors of a configuration.
type validator struct{ errs field.ErrorList }

func (v *validator) add(err *field.Error) { v.errs = append(v.errs, err) }

// check adds an error for every message that check returns for a value.
func (v *validator) check(path *field.Path, value string, check func(string) []string) {
	for _, msg := range check(value) {
		v.add(field.Invalid(path, value, msg))
	}
}

// each checks every value of a list.
func (v *validator) each(path *field.Path, values []string, check func(string) []string) {
	for i, value := range values {
		v.check(path.Index(i), value, check)
	}
}

func (v *validator) atLeast(path *field.Path, value *int32, minimum int32) {
	if value != nil && *value < minimum {
		v.add(field.Invalid(path, *value, fmt.Sprintf("must be at least %d", minimum)))
	}
}

// between checks the limits of a value. because ends the message.
func (v *validator) between(path *field.Path, value *int32, minimum, maximum int32, because string) {
	if value != nil && (*value < minimum || *value > maximum) {
		v.add(field.Invalid(path, *value, fmt.Sprintf("must be from %d to %d%s", minimum, maximum, because)))
	}
}

func oneOf[T ~string](v *validator, path *field.Path, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		v.add(field.NotSupported(path, value, supported))
	}
}

// pair adds an error unless both of two fields are set, or neither.
func (v *validator) pair(path *field.Path, first, value, second, other string) {
	if (value == "") != (other == "") {
		v.add(field.Invalid(path.Child(first), value, first+" and "+second+" must both be set, or neither"))
	}
}

// pattern adds an error for an invalid pattern of names.
func (v *validator) pattern(path *field.Path, pattern string) {
	if _, err := pathpkg.Match(pattern, ""); err != nil {
		v.add(field.Invalid(path, pattern, "is no pattern: a bracket is not closed, or a backslash stands at the end"))
	}
}

// url checks the URL of a server, and returns it if it is valid.
func (v *validator) url(path *field.Path, value string) *url.URL {
	u, err := url.Parse(value)
	switch {
	case value == "":
		v.add(field.Required(path, "give the URL, such as https://aai.onap:8443"))
	case err != nil:
		// The error omits the value, because it may contain a password that cannot be located and redacted.
		v.add(field.Invalid(path, "(not shown)", "cannot be read as a URL"))
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.add(field.Invalid(path, u.Redacted(), "must be an http or https URL"))
	case u.User != nil:
		v.add(field.Invalid(path, u.Redacted(), "must not hold a password: use usernameFile and passwordFile"))
	case strings.TrimRight(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		v.add(field.Invalid(path, u.Redacted(), "must be scheme, host and port only"))
	default:
		return u
	}
	return nil
}

func (v *validator) monitor(path *field.Path, m *Monitor) {
	v.each(path.Child("labelKeys"), m.LabelKeys, content.IsLabelKey)
	v.each(path.Child("allowedLabels"), m.AllowedLabels, content.IsLabelKey)
	v.each(path.Child("namespaces"), m.Namespaces, content.IsDNS1123Label)
	v.each(path.Child("trustedNamespaces"), m.TrustedNamespaces, content.IsDNS1123Label)
	for i, trusted := range m.TrustedNamespaces {
		if len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, trusted) {
			v.add(field.Invalid(path.Child("trustedNamespaces").Index(i), trusted, "must be among namespaces, or it is not watched"))
		}
	}
	for i, kind := range m.Kinds {
		v.monitoredKind(path.Child("kinds").Index(i), kind)
	}
	v.atLeast(path.Child("listBudgetKiB"), m.ListBudgetKiB, 1)
	v.between(path.Child("limitKiB"), m.LimitKiB, minLimitKiB, maxLimitKiB, "")
	b, at := m.CreateBundles, path.Child("createBundles")
	if b == nil {
		return
	}
	v.check(at.Child("labelKey"), b.LabelKey, content.IsLabelKey)
	switch {
	case b.Preset == "":
	case b.Preset != PresetKubeVela:
		v.add(field.NotSupported(at.Child("preset"), b.Preset, []BundlePreset{PresetKubeVela}))
	case b.LabelKey != corev1alpha2.LabelApplication:
		v.add(field.Invalid(at.Child("labelKey"), b.LabelKey, fmt.Sprintf("the preset %q makes bundles by the label %q: leave labelKey out", b.Preset, corev1alpha2.LabelApplication)))
	case !slices.Contains(m.AllowedLabels, corev1alpha2.LabelComponent):
		v.add(field.Required(path.Child("allowedLabels"), fmt.Sprintf("the preset %q needs the label %q among them", b.Preset, corev1alpha2.LabelComponent)))
	}
}

func (v *validator) monitoredKind(path *field.Path, kind MonitoredKind) {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	switch {
	case err != nil || kind.APIVersion != "" && gv.Version == "":
		v.add(field.Invalid(path.Child("apiVersion"), kind.APIVersion, "must be group/version, or v1"))
	case kind.APIVersion == "":
		v.add(field.Required(path.Child("apiVersion"), "name group and version, such as cert-manager.io/v1"))
	case kind.Kind == "ResourceBundleState" && gv.Group == "k8splugin.io":
		v.add(field.Invalid(path.Child("kind"), kind.Kind, "a bundle cannot be part of a bundle"))
	}
	if kind.Kind == "" {
		v.add(field.Required(path.Child("kind"), "name the kind, such as Certificate"))
	}
}

func (v *validator) fleet(path *field.Path, f *Fleet) {
	v.check(path.Child("namespace"), f.Namespace, content.IsDNS1123Label)
	v.check(path.Child("monitorNamespace"), f.MonitorNamespace, content.IsDNS1123Label)
	v.atLeast(path.Child("queriesPerSecond"), f.QueriesPerSecond, 1)
	v.atLeast(path.Child("burst"), f.Burst, 1)
	budget := path.Child("budget")
	v.atLeast(budget.Child("bundles"), f.Budget.Bundles, 1)
	v.atLeast(budget.Child("resources"), f.Budget.Resources, 1)
	v.atLeast(budget.Child("memoryMiB"), f.Budget.MemoryMiB, 1)
	v.atLeast(budget.Child("changesPerSecond"), f.Budget.ChangesPerSecond, 1)
	v.atLeast(budget.Child("totalMemoryMiB"), f.Budget.TotalMemoryMiB, 1)
	v.between(path.Child("timeoutSeconds"), f.TimeoutSeconds, 1, maxFleetTimeout, ", or a cluster that is away is noticed too late")
}

func (v *validator) inventory(path *field.Path, i *Inventory) {
	v.url(path.Child("url"), i.URL)
	v.url(path.Child("selflinkBase"), i.SelflinkBase)
	if !schemaVersion.MatchString(i.SchemaVersion) {
		v.add(field.Invalid(path.Child("schemaVersion"), i.SchemaVersion, "must be v24 or later: earlier versions of A&AI have no k8s-resource"))
	}
	v.check(path.Child("installation"), i.Installation, content.IsDNS1123Label)
	v.pair(path, "usernameFile", i.UsernameFile, "passwordFile", i.PasswordFile)
	v.pair(path, "certFile", i.CertFile, "keyFile", i.KeyFile)
	v.atLeast(path.Child("maxRequestsPerSecond"), i.MaxRequestsPerSecond, 1)
	v.between(path.Child("maxDeletionPercent"), i.MaxDeletionPercent, 1, 100, "")
	oneOf(v, path.Child("policy"), i.Policy, PolicySync, PolicyUpsertOnly)
	v.atLeast(path.Child("timeoutSeconds"), i.TimeoutSeconds, 1)
	v.atLeast(path.Child("resyncSeconds"), i.ResyncSeconds, 10)
	oneOf(v, path.Child("select"), i.Select, SelectScoped, SelectAll)
	for n, kind := range i.Kinds {
		if kind == "Secret" {
			v.add(field.Forbidden(path.Child("kinds").Index(n), "Secrets are never synchronized"))
		}
	}
	for n, r := range i.Regions {
		at := path.Child("regions").Index(n)
		for _, f := range [][2]string{{"cluster", r.Cluster}, {"cloudOwner", r.CloudOwner}, {"cloudRegionId", r.CloudRegionID}, {"tenantId", r.TenantID}} {
			if f[1] == "" {
				v.add(field.Required(at.Child(f[0]), ""))
			}
		}
		v.pattern(at.Child("cluster"), r.Cluster)
		v.pattern(at.Child("namespace"), r.Namespace)
	}
	for n, link := range i.Links {
		at := path.Child("links").Index(n)
		if link.Namespace == "" {
			v.add(field.Required(at.Child("namespace"), "name a namespace, or * for all"))
		}
		v.pattern(at.Child("namespace"), link.Namespace)
		for m, id := range link.GenericVNFIDs {
			v.pattern(at.Child("genericVnfIds").Index(m), id)
		}
	}
}
