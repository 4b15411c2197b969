package v1alpha1

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NoServer is the value of an address for a server that is disabled.
const NoServer = "0"

// maxAppContextTimeout is less than the time limit of responses of the status REST server, so that callers get the cause when
// etcd does not respond.
const maxAppContextTimeout = 15

func validateAPI(path *field.Path, a *API) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range content.IsDNS1123Label(a.DefaultNamespace) {
		errs = append(errs, field.Invalid(path.Child("defaultNamespace"), a.DefaultNamespace, msg))
	}
	errs = append(errs, validatePair(path, "certFile", a.CertFile, "keyFile", a.KeyFile)...)
	loopback, listenErrs := validateListener(path.Child("bindAddress"), a.BindAddress)
	errs = append(errs, listenErrs...)
	if len(listenErrs) == 0 && !loopback && a.CertFile == "" {
		errs = append(errs, field.Required(path.Child("certFile"), "is needed unless bindAddress is a loopback address, such as 127.0.0.1:8082: tokens must not go over the network in the clear"))
	}
	return append(errs, validateAnonymous(path.Child("anonymousBindAddress"), a.AnonymousBindAddress, "127.0.0.1:8083")...)
}

// validateAnonymous checks the address of a listener for callers without a token.
func validateAnonymous(path *field.Path, address, example string) field.ErrorList {
	if address == "" {
		return nil
	}
	loopback, errs := validateListener(path, address)
	if len(errs) == 0 && !loopback {
		errs = append(errs, field.Invalid(path, address, "must be a loopback address, such as "+example+", because callers are not asked who they are"))
	}
	return errs
}

func validateMetrics(path *field.Path, m *Metrics) field.ErrorList {
	errs := validatePair(path, "certFile", m.CertFile, "keyFile", m.KeyFile)
	_, listenErrs := validateListener(path.Child("bindAddress"), m.BindAddress)
	errs = append(errs, listenErrs...)
	errs = append(errs, validateAnonymous(path.Child("anonymousBindAddress"), m.AnonymousBindAddress, "127.0.0.1:8084")...)
	if m.BindAddress != NoServer && m.BindAddress == m.AnonymousBindAddress {
		errs = append(errs, field.Invalid(path.Child("anonymousBindAddress"), m.AnonymousBindAddress, "must be another address than bindAddress"))
	}
	return errs
}

func validateTracing(path *field.Path, t *Tracing) field.ErrorList {
	errs := validateCollector(path.Child("endpoint"), t.Endpoint)
	if n := t.SamplingPercent; n != nil && (*n < 0 || *n > 100) {
		errs = append(errs, field.Invalid(path.Child("samplingPercent"), *n, "must be from 0 to 100"))
	}
	return errs
}

// validateListener checks an address to listen on, and reports whether only the machine itself can reach it. NoServer counts as
// such an address.
func validateListener(path *field.Path, address string) (loopback bool, errs field.ErrorList) {
	if address == NoServer {
		return true, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, field.ErrorList{field.Invalid(path, address, "must be host:port, or 0 for no server")}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		errs = append(errs, field.Invalid(path, address, "the port must be a number from 0 to 65535"))
	}
	return IsLoopback(address), errs
}

// IsLoopback reports whether only the machine itself can reach an address, host:port.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func validateCollector(path *field.Path, endpoint string) field.ErrorList {
	if endpoint == "" {
		return field.ErrorList{field.Required(path, "give the URL of a collector, such as http://otel-collector.monitoring:4318")}
	}
	if u, err := url.Parse(endpoint); err == nil && u.User != nil {
		return field.ErrorList{field.Invalid(path, u.Redacted(), "must not hold a password")}
	}
	return validateURL(path, endpoint)
}

func validateAppContext(path *field.Path, a *AppContext) field.ErrorList {
	var errs field.ErrorList
	if len(a.Endpoints) == 0 {
		errs = append(errs, field.Required(path.Child("endpoints"), "give the URLs of etcd, such as https://etcd:2379"))
	}
	for n, endpoint := range a.Endpoints {
		errs = append(errs, validateEndpoint(path.Child("endpoints").Index(n), a, endpoint)...)
	}
	errs = append(errs, validatePair(path, "usernameFile", a.UsernameFile, "passwordFile", a.PasswordFile)...)
	errs = append(errs, validatePair(path, "certFile", a.CertFile, "keyFile", a.KeyFile)...)
	if n := a.TimeoutSeconds; n != nil && (*n < 1 || *n > maxAppContextTimeout) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *n, fmt.Sprintf("must be from 1 to %d", maxAppContextTimeout)))
	}
	return errs
}

// validateEndpoint checks the URL of a member of etcd. All members must use TLS, or none.
func validateEndpoint(at *field.Path, a *AppContext, endpoint string) field.ErrorList {
	if errs := validateURL(at, endpoint); len(errs) > 0 {
		return errs
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil // validateURL has parsed the endpoint without an error.
	case !strings.HasPrefix(a.Endpoints[0], u.Scheme+":"):
		return field.ErrorList{field.Invalid(at, endpoint, "must have the same scheme as the first")}
	case u.Scheme == "http" && (a.CAFile != "" || a.CertFile != ""):
		return field.ErrorList{field.Invalid(at, endpoint, "must begin with https, because caFile or certFile is set")}
	}
	return nil
}

// validatePair returns an error unless both of two fields are set, or neither.
func validatePair(path *field.Path, first, value, second, other string) field.ErrorList {
	if (value == "") == (other == "") {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child(first), value, first+" and "+second+" must both be set, or neither")}
}
