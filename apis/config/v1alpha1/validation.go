package v1alpha1

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// schemaVersion matches the versions of the A&AI schema that can hold k8s-resource: v24 to v99.
var schemaVersion = regexp.MustCompile(`^v(2[4-9]|[3-9][0-9])$`)

// Validate returns an error for every field of a configuration, with defaults filled in, whose value cannot be used.
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
	errs = append(errs, validateSeconds(policy.Child("failureGraceSeconds"), c.Policy.FailureGraceSeconds, 0)...)
	errs = append(errs, validateMonitor(field.NewPath("monitor"), &c.Monitor)...)
	errs = append(errs, validateAPI(field.NewPath("api"), &c.API)...)
	if c.Inventory != nil {
		errs = append(errs, validateInventory(field.NewPath("inventory"), c.Inventory)...)
	}
	return errs
}

func validateMonitor(path *field.Path, m *Monitor) field.ErrorList {
	var errs field.ErrorList
	for i, key := range m.LabelKeys {
		for _, msg := range content.IsLabelKey(key) {
			errs = append(errs, field.Invalid(path.Child("labelKeys").Index(i), key, msg))
		}
	}
	for i, key := range m.AllowedLabels {
		for _, msg := range content.IsLabelKey(key) {
			errs = append(errs, field.Invalid(path.Child("allowedLabels").Index(i), key, msg))
		}
	}
	for i, ns := range m.Namespaces {
		for _, msg := range content.IsDNS1123Label(ns) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), ns, msg))
		}
	}
	return errs
}

func validateAPI(path *field.Path, a *API) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range content.IsDNS1123Label(a.DefaultNamespace) {
		errs = append(errs, field.Invalid(path.Child("defaultNamespace"), a.DefaultNamespace, msg))
	}
	if a.BindAddress == "0" {
		return errs
	}
	host, port, err := net.SplitHostPort(a.BindAddress)
	if err != nil {
		return append(errs, field.Invalid(path.Child("bindAddress"), a.BindAddress, "must be host:port, or 0 for no server"))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		errs = append(errs, field.Invalid(path.Child("bindAddress"), a.BindAddress, "the port must be a number from 0 to 65535"))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		errs = append(errs, field.Invalid(path.Child("bindAddress"), a.BindAddress, "must be a loopback address, such as 127.0.0.1:8082, because callers are not authenticated"))
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
	if (i.UsernameFile == "") != (i.PasswordFile == "") {
		errs = append(errs, field.Invalid(path.Child("usernameFile"), i.UsernameFile, "usernameFile and passwordFile must both be set, or neither"))
	}
	errs = append(errs, validateSeconds(path.Child("timeoutSeconds"), i.TimeoutSeconds, 1)...)
	errs = append(errs, validateSeconds(path.Child("resyncSeconds"), i.ResyncSeconds, 10)...)
	if i.Select != SelectScoped && i.Select != SelectAll {
		errs = append(errs, field.NotSupported(path.Child("select"), i.Select, []InventorySelect{SelectScoped, SelectAll}))
	}
	for n, kind := range i.Kinds {
		if kind == "Secret" {
			errs = append(errs, field.Forbidden(path.Child("kinds").Index(n), "Secrets are never synchronised"))
		}
	}
	for n := range i.Regions {
		errs = append(errs, validateRegion(path.Child("regions").Index(n), &i.Regions[n])...)
	}
	for n, link := range i.Links {
		if link.Namespace == "" {
			errs = append(errs, field.Required(path.Child("links").Index(n).Child("namespace"), "name a namespace, or * for all"))
		}
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
	return errs
}

func validateURL(path *field.Path, value string) field.ErrorList {
	u, err := url.Parse(value)
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "give the URL, such as https://aai.onap:8443")}
	case err != nil:
		// The value may hold a password in a place where it cannot be found and left out.
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
