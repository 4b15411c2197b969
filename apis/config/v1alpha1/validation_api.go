package v1alpha1

import (
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

func (v *validator) api(path *field.Path, a *API) {
	v.check(path.Child("defaultNamespace"), a.DefaultNamespace, content.IsDNS1123Label)
	v.pair(path, "certFile", a.CertFile, "keyFile", a.KeyFile)
	if valid, loopback := v.listener(path.Child("bindAddress"), a.BindAddress); valid && !loopback && a.CertFile == "" {
		v.add(field.Required(path.Child("certFile"), "is needed unless bindAddress is a loopback address, such as 127.0.0.1:8082: tokens must not go over the network in the clear"))
	}
	v.anonymousListener(path, a.BindAddress, a.AnonymousBindAddress, "127.0.0.1:8083")
}

func (v *validator) metrics(path *field.Path, m *Metrics) {
	v.pair(path, "certFile", m.CertFile, "keyFile", m.KeyFile)
	v.listener(path.Child("bindAddress"), m.BindAddress)
	v.anonymousListener(path, m.BindAddress, m.AnonymousBindAddress, "127.0.0.1:8084")
}

func (v *validator) grpc(path *field.Path, g *RsyncGRPC) {
	v.pair(path, "certFile", g.CertFile, "keyFile", g.KeyFile)
	valid, loopback := v.listener(path.Child("bindAddress"), g.BindAddress)
	switch {
	case g.CertFile != "" && g.AllowPlaintext:
		v.add(field.Forbidden(path.Child("allowPlaintext"), "cannot be set with certFile: nothing goes in the clear then"))
	case g.CertFile == "" && g.ClientCAFile != "":
		v.add(field.Forbidden(path.Child("clientCAFile"), "needs certFile: without TLS there are no certificates"))
	case g.CertFile == "" && valid && !loopback && !g.AllowPlaintext:
		v.add(field.Required(path.Child("certFile"), "is needed unless bindAddress is a loopback address, such as 127.0.0.1:9031, or allowPlaintext is set: callers are not asked who they are then"))
	}
}

// listener checks an address to listen on. loopback reports whether only the machine itself can reach it, as for NoServer.
func (v *validator) listener(path *field.Path, address string) (valid, loopback bool) {
	if address == NoServer {
		return true, true
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		v.add(field.Invalid(path, address, "must be host:port, or 0 for no server"))
		return false, false
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.add(field.Invalid(path, address, "the port must be a number from 0 to 65535"))
		return false, false
	}
	return true, IsLoopback(address)
}

// anonymousListener checks the address of a listener for callers without a token; empty means none.
func (v *validator) anonymousListener(section *field.Path, bindAddress, address, example string) {
	if address == "" {
		return
	}
	path := section.Child("anonymousBindAddress")
	if valid, loopback := v.listener(path, address); valid && !loopback {
		v.add(field.Invalid(path, address, "must be a loopback address, such as "+example+", because callers are not asked who they are"))
	}
	_, port, _ := net.SplitHostPort(address)
	host, other, _ := net.SplitHostPort(bindAddress)
	if all := host == "" || net.ParseIP(host).IsUnspecified(); port == other && port != "" && port != "0" && (all || address == bindAddress) {
		v.add(field.Invalid(path, address, "must have another port than bindAddress"))
	}
}

// IsLoopback reports whether only the machine itself can reach an address, host:port.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (v *validator) tracing(path *field.Path, t *Tracing) {
	u, err := url.Parse(t.Endpoint)
	switch at := path.Child("endpoint"); {
	case t.Endpoint == "":
		v.add(field.Required(at, "give the URL of a collector, such as http://otel-collector.monitoring:4318"))
	case err == nil && u.User != nil:
		v.add(field.Invalid(at, u.Redacted(), "must not hold a password"))
	default:
		v.url(at, t.Endpoint)
	}
	v.between(path.Child("samplingPercent"), t.SamplingPercent, 0, 100, "")
}

func (v *validator) appContext(path *field.Path, a *AppContext) {
	if len(a.Endpoints) == 0 {
		v.add(field.Required(path.Child("endpoints"), "give the URLs of etcd, such as https://etcd:2379"))
	}
	for n, endpoint := range a.Endpoints {
		at := path.Child("endpoints").Index(n)
		switch u := v.url(at, endpoint); {
		case u == nil:
		case !strings.HasPrefix(a.Endpoints[0], u.Scheme+":"): // All members must use TLS, or none.
			v.add(field.Invalid(at, endpoint, "must have the same scheme as the first"))
		case u.Scheme == "http" && (a.CAFile != "" || a.CertFile != ""):
			v.add(field.Invalid(at, endpoint, "must begin with https, because caFile or certFile is set"))
		}
	}
	v.pair(path, "usernameFile", a.UsernameFile, "passwordFile", a.PasswordFile)
	v.pair(path, "certFile", a.CertFile, "keyFile", a.KeyFile)
	v.between(path.Child("timeoutSeconds"), a.TimeoutSeconds, 1, maxAppContextTimeout, "")
}
