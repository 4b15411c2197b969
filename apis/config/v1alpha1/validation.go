package v1alpha1

import (
	"fmt"
	"net/url"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// schemaVersion matches the versions of the A&AI schema that have k8s-resource: v24 to v99.
var schemaVersion = regexp.MustCompile(`^v(2[4-9]|[3-9][0-9])$`)

// Validate returns an error for every invalid field of a configuration. The configuration must have its defaults (SetDefaults).
func Validate(c *Configuration) field.ErrorList {
	var errs field.ErrorList
	if c.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	policy := field.NewPath("policy")
	errs = append(errs, validateSeconds(policy.Child("pendingTimeoutSeconds"), c.Policy.PendingTimeoutSeconds, 0)...)
	errs = append(errs, validateSeconds(policy.Child("notPresentGraceSeconds"), c.Policy.NotPresentGraceSeconds, 0)...)
	errs = append(errs, validateSeconds(policy.Child("noStatusGraceSeconds"), c.Policy.NoStatusGraceSeconds, 0)...)
	errs = append(errs, validateSeconds(policy.Child("failureGraceSeconds"), c.Policy.FailureGraceSeconds, 0)...)
	errs = append(errs, validateSeconds(policy.Child("recoveryHoldSeconds"), c.Policy.RecoveryHoldSeconds, 0)...)
	errs = append(errs, validateMonitor(field.NewPath("monitor"), &c.Monitor)...)
	errs = append(errs, validateFleet(field.NewPath("fleet"), &c.Fleet)...)
	errs = append(errs, validateAPI(field.NewPath("api"), &c.API)...)
	errs = append(errs, validateMetrics(field.NewPath("metrics"), &c.Metrics)...)
	if c.Tracing != nil {
		errs = append(errs, validateTracing(field.NewPath("tracing"), c.Tracing)...)
	}
	if c.AppContext != nil {
		errs = append(errs, validateAppContext(field.NewPath("appContext"), c.AppContext)...)
	}
	if c.Recorder != nil && c.AppContext == nil {
		errs = append(errs, field.Forbidden(field.NewPath("recorder"), "needs the section appContext, which says where to save"))
	}
	errs = append(errs, validateEach(field.NewPath("oam", "trustedNamespaces"), c.OAM.TrustedNamespaces, content.IsDNS1123Label)...)
	if c.OAM.LabelServices && !c.OAM.ApplicationConfigurations {
		errs = append(errs, field.Forbidden(field.NewPath("oam", "labelServices"), "needs oam.applicationConfigurations"))
	}
	errs = append(errs, validateRsync(field.NewPath("rsync"), c)...)
	errs = append(errs, validateHealthCheckExprs(field.NewPath("healthCheckExprs"), c.HealthCheckExprs)...)
	if c.Inventory != nil {
		errs = append(errs, validateInventory(field.NewPath("inventory"), c.Inventory)...)
	}
	return errs
}

func validateRsync(path *field.Path, c *Configuration) field.ErrorList {
	var errs field.ErrorList
	if c.Rsync.Enabled && c.AppContext == nil {
		errs = append(errs, field.Forbidden(path.Child("enabled"), "requires appContext, the etcd that holds the contexts"))
	}
	if o := c.Rsync.DeletionOrder; o != DeletionReverse && o != DeletionListed {
		errs = append(errs, field.NotSupported(path.Child("deletionOrder"), o, []DeletionOrder{DeletionReverse, DeletionListed}))
	}
	if c.Rsync.GRPC == nil {
		return errs
	}
	path, g := path.Child("grpc"), c.Rsync.GRPC
	errs = append(errs, validatePair(path, "certFile", g.CertFile, "keyFile", g.KeyFile)...)
	loopback, listenErrs := validateListener(path.Child("bindAddress"), g.BindAddress)
	errs = append(errs, listenErrs...)
	switch {
	case g.CertFile != "" && g.AllowPlaintext:
		errs = append(errs, field.Forbidden(path.Child("allowPlaintext"), "cannot be set with certFile: nothing goes in the clear then"))
	case g.CertFile == "" && g.ClientCAFile != "":
		errs = append(errs, field.Forbidden(path.Child("clientCAFile"), "needs certFile: without TLS there are no certificates"))
	case g.CertFile == "" && !loopback && len(listenErrs) == 0 && !g.AllowPlaintext:
		errs = append(errs, field.Required(path.Child("certFile"), "is needed unless bindAddress is a loopback address, such as 127.0.0.1:9031, or allowPlaintext is set: callers are not asked who they are then"))
	}
	return errs
}

// minLimitKiB leaves space for the parts that every bundle must have.
const minLimitKiB = 16

// maxFleetTimeout limits the time until an unreachable cluster is detected.
const maxFleetTimeout = 60

// maxLimitKiB leaves space for metadata below etcd's limit of 1.5 MiB for a request.
const maxLimitKiB = 1400

func validateMonitor(path *field.Path, m *Monitor) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateEach(path.Child("labelKeys"), m.LabelKeys, content.IsLabelKey)...)
	errs = append(errs, validateEach(path.Child("allowedLabels"), m.AllowedLabels, content.IsLabelKey)...)
	errs = append(errs, validateEach(path.Child("namespaces"), m.Namespaces, content.IsDNS1123Label)...)
	errs = append(errs, validateEach(path.Child("trustedNamespaces"), m.TrustedNamespaces, content.IsDNS1123Label)...)
	for i, trusted := range m.TrustedNamespaces {
		if len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, trusted) {
			errs = append(errs, field.Invalid(path.Child("trustedNamespaces").Index(i), trusted, "must be among namespaces, or it is not watched"))
		}
	}
	for i, kind := range m.Kinds {
		errs = append(errs, validateKind(path.Child("kinds").Index(i), kind)...)
	}
	if m.ListBudgetKiB != nil && *m.ListBudgetKiB < 1 {
		errs = append(errs, field.Invalid(path.Child("listBudgetKiB"), *m.ListBudgetKiB, "must be at least 1"))
	}
	if m.LimitKiB != nil && (*m.LimitKiB < minLimitKiB || *m.LimitKiB > maxLimitKiB) {
		errs = append(errs, field.Invalid(path.Child("limitKiB"), *m.LimitKiB, fmt.Sprintf("must be from %d to %d", minLimitKiB, maxLimitKiB)))
	}
	if m.CreateBundles != nil {
		errs = append(errs, validateCreateBundles(path, m)...)
	}
	return errs
}

func validateCreateBundles(path *field.Path, m *Monitor) field.ErrorList {
	var errs field.ErrorList
	at, b := path.Child("createBundles"), m.CreateBundles
	for _, msg := range content.IsLabelKey(b.LabelKey) {
		errs = append(errs, field.Invalid(at.Child("labelKey"), b.LabelKey, msg))
	}
	switch {
	case b.Preset == "":
	case b.Preset != PresetKubeVela:
		errs = append(errs, field.NotSupported(at.Child("preset"), b.Preset, []BundlePreset{PresetKubeVela}))
	case b.LabelKey != corev1alpha2.LabelApplication:
		errs = append(errs, field.Invalid(at.Child("labelKey"), b.LabelKey, fmt.Sprintf("the preset %q makes bundles by the label %q: leave labelKey out", b.Preset, corev1alpha2.LabelApplication)))
	case !slices.Contains(m.AllowedLabels, corev1alpha2.LabelComponent):
		errs = append(errs, field.Required(path.Child("allowedLabels"), fmt.Sprintf("the preset %q needs the label %q among them", b.Preset, corev1alpha2.LabelComponent)))
	}
	return errs
}

// validateEach returns an error for every message that check returns for one of the values.
func validateEach(path *field.Path, values []string, check func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		for _, msg := range check(value) {
			errs = append(errs, field.Invalid(path.Index(i), value, msg))
		}
	}
	return errs
}

func validateKind(path *field.Path, kind MonitoredKind) field.ErrorList {
	var errs field.ErrorList
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	switch {
	case err != nil || kind.APIVersion != "" && gv.Version == "":
		errs = append(errs, field.Invalid(path.Child("apiVersion"), kind.APIVersion, "must be group/version, or v1"))
	case kind.APIVersion == "":
		errs = append(errs, field.Required(path.Child("apiVersion"), "name group and version, such as cert-manager.io/v1"))
	case kind.Kind == "ResourceBundleState" && gv.Group == "k8splugin.io":
		errs = append(errs, field.Invalid(path.Child("kind"), kind.Kind, "a bundle cannot be part of a bundle"))
	}
	if kind.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "name the kind, such as Certificate"))
	}
	return errs
}

func validateFleet(path *field.Path, f *Fleet) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct{ name, namespace string }{{"namespace", f.Namespace}, {"monitorNamespace", f.MonitorNamespace}} {
		for _, msg := range content.IsDNS1123Label(n.namespace) {
			errs = append(errs, field.Invalid(path.Child(n.name), n.namespace, msg))
		}
	}
	errs = append(errs, validateSeconds(path.Child("queriesPerSecond"), f.QueriesPerSecond, 1)...)
	errs = append(errs, validateSeconds(path.Child("burst"), f.Burst, 1)...)
	budget := path.Child("budget")
	errs = append(errs, validateSeconds(budget.Child("bundles"), f.Budget.Bundles, 1)...)
	errs = append(errs, validateSeconds(budget.Child("resources"), f.Budget.Resources, 1)...)
	errs = append(errs, validateSeconds(budget.Child("memoryMiB"), f.Budget.MemoryMiB, 1)...)
	errs = append(errs, validateSeconds(budget.Child("changesPerSecond"), f.Budget.ChangesPerSecond, 1)...)
	errs = append(errs, validateSeconds(budget.Child("totalMemoryMiB"), f.Budget.TotalMemoryMiB, 1)...)
	if n := f.TimeoutSeconds; n != nil && (*n < 1 || *n > maxFleetTimeout) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *n, fmt.Sprintf("must be from 1 to %d, or a cluster that is away is noticed too late", maxFleetTimeout)))
	}
	return errs
}

func validateInventory(path *field.Path, i *Inventory) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateURL(path.Child("url"), i.URL)...)
	errs = append(errs, validateURL(path.Child("selflinkBase"), i.SelflinkBase)...)
	if !schemaVersion.MatchString(i.SchemaVersion) {
		errs = append(errs, field.Invalid(path.Child("schemaVersion"), i.SchemaVersion, "must be v24 or later: earlier versions of A&AI have no k8s-resource"))
	}
	for _, msg := range content.IsDNS1123Label(i.Installation) {
		errs = append(errs, field.Invalid(path.Child("installation"), i.Installation, msg))
	}
	errs = append(errs, validatePair(path, "usernameFile", i.UsernameFile, "passwordFile", i.PasswordFile)...)
	errs = append(errs, validatePair(path, "certFile", i.CertFile, "keyFile", i.KeyFile)...)
	errs = append(errs, validateLimits(path, i)...)
	errs = append(errs, validateSeconds(path.Child("timeoutSeconds"), i.TimeoutSeconds, 1)...)
	errs = append(errs, validateSeconds(path.Child("resyncSeconds"), i.ResyncSeconds, 10)...)
	if i.Select != SelectScoped && i.Select != SelectAll {
		errs = append(errs, field.NotSupported(path.Child("select"), i.Select, []InventorySelect{SelectScoped, SelectAll}))
	}
	for n, kind := range i.Kinds {
		if kind == "Secret" {
			errs = append(errs, field.Forbidden(path.Child("kinds").Index(n), "Secrets are never synchronized"))
		}
	}
	for n := range i.Regions {
		errs = append(errs, validateRegion(path.Child("regions").Index(n), &i.Regions[n])...)
	}
	for n, link := range i.Links {
		if link.Namespace == "" {
			errs = append(errs, field.Required(path.Child("links").Index(n).Child("namespace"), "name a namespace, or * for all"))
		}
		errs = append(errs, validateLink(path.Child("links").Index(n), &link)...)
	}
	return errs
}

// validateLimits checks the fields that limit the writes to A&AI.
func validateLimits(path *field.Path, i *Inventory) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateSeconds(path.Child("maxRequestsPerSecond"), i.MaxRequestsPerSecond, 1)...)
	if n := i.MaxDeletionPercent; n != nil && (*n < 1 || *n > 100) {
		errs = append(errs, field.Invalid(path.Child("maxDeletionPercent"), *n, "must be from 1 to 100"))
	}
	if i.Policy != PolicySync && i.Policy != PolicyUpsertOnly {
		errs = append(errs, field.NotSupported(path.Child("policy"), i.Policy, []InventoryPolicy{PolicySync, PolicyUpsertOnly}))
	}
	return errs
}

func validateRegion(path *field.Path, r *Region) field.ErrorList {
	var errs field.ErrorList
	for _, f := range [][2]string{{"cluster", r.Cluster}, {"cloudOwner", r.CloudOwner}, {"cloudRegionId", r.CloudRegionID}, {"tenantId", r.TenantID}} {
		if f[1] == "" {
			errs = append(errs, field.Required(path.Child(f[0]), ""))
		}
	}
	errs = append(errs, validatePattern(path.Child("cluster"), r.Cluster)...)
	return append(errs, validatePattern(path.Child("namespace"), r.Namespace)...)
}

func validateLink(path *field.Path, l *LinkPolicy) field.ErrorList {
	errs := validatePattern(path.Child("namespace"), l.Namespace)
	for n, id := range l.GenericVNFIDs {
		errs = append(errs, validatePattern(path.Child("genericVnfIds").Index(n), id)...)
	}
	return errs
}

// validatePattern returns an error for an invalid pattern of names.
func validatePattern(at *field.Path, pattern string) field.ErrorList {
	if _, err := pathpkg.Match(pattern, ""); err != nil {
		return field.ErrorList{field.Invalid(at, pattern, "is no pattern: a bracket is not closed, or a backslash stands at the end")}
	}
	return nil
}

func validateURL(path *field.Path, value string) field.ErrorList {
	u, err := url.Parse(value)
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "give the URL, such as https://aai.onap:8443")}
	case err != nil:
		// The error omits the value, because it may contain a password that cannot be located and redacted.
		return field.ErrorList{field.Invalid(path, "(not shown)", "cannot be read as a URL")}
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return field.ErrorList{field.Invalid(path, u.Redacted(), "must be an http or https URL")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(path, u.Redacted(), "must not hold a password: use usernameFile and passwordFile")}
	case strings.TrimRight(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return field.ErrorList{field.Invalid(path, u.Redacted(), "must be scheme, host and port only")}
	}
	return nil
}

func validateSeconds(path *field.Path, value *int32, minimum int32) field.ErrorList {
	if value == nil || *value >= minimum {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, "must be at least "+strconv.Itoa(int(minimum)))}
}
