package app

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/http/pprof"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
)

// newMetricsManager makes a manager that serves metrics, and the profiles of the program, as the configuration says: to callers with a token, and to those without at an address of their own.
func newMetricsManager(o *Options, config *configv1alpha1.Metrics, managerOptions ctrl.Options) (ctrl.Manager, error) {
	certificates, err := metricsCertificates(config)
	if err != nil {
		return nil, err
	}
	managerOptions.Metrics = metricsOptions(config, certificates)
	mgr, err := ctrl.NewManager(o.REST, managerOptions)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the manager")
	}
	if watch, ok := certificates.(manager.Runnable); ok {
		if err := mgr.Add(watch); err != nil {
			return nil, errors.Wrap(err, "cannot watch the certificate of the metrics server")
		}
	}
	return mgr, addAnonymousMetrics(mgr, config)
}

// certificates knows the certificate of a server.
type certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// metricsCertificates returns the certificate of the metrics server: that in the files; or one of its own making where tokens go over the network; or nil.
func metricsCertificates(config *configv1alpha1.Metrics) (certificates, error) {
	switch {
	case config.BindAddress == configv1alpha1.NoServer:
		return nil, nil //nolint:nilnil // No certificate is needed.
	case config.CertFile != "":
		watch, err := certwatcher.New(config.CertFile, config.KeyFile)
		return watch, errors.Wrap(err, "cannot read the certificate of the metrics server")
	case configv1alpha1.IsLoopback(config.BindAddress):
		return nil, nil //nolint:nilnil // As above.
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("healthscope", nil, nil)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a certificate for the metrics server")
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return fixedCertificate{&pair}, errors.Wrap(err, "cannot make a certificate for the metrics server")
}

// fixedCertificate is a certificate that stays the same while the program runs.
type fixedCertificate struct{ *tls.Certificate }

// GetCertificate implements certificates.
func (f fixedCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.Certificate, nil
}

// metricsOptions are those of the server for callers with a token, which speaks https if it has a certificate.
func metricsOptions(config *configv1alpha1.Metrics, certificates certificates) metricsserver.Options {
	o := metricsserver.Options{BindAddress: config.BindAddress, FilterProvider: access.MetricsFilter, ExtraHandlers: profiles()}
	if certificates != nil {
		o.SecureServing = true
		o.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate, c.MinVersion = certificates.GetCertificate, tls.VersionTLS12 }}
	}
	return o
}

// profiles are the handlers of net/http/pprof. The first serves all profiles by name, such as heap and goroutine.
func profiles() map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
}

// addAnonymousMetrics adds the server for callers without a token, if one is wanted. It serves /metrics only.
func addAnonymousMetrics(mgr ctrl.Manager, config *configv1alpha1.Metrics) error {
	address := cmp.Or(config.AnonymousBindAddress, configv1alpha1.NoServer)
	if address == configv1alpha1.NoServer {
		return nil
	}
	server, err := metricsserver.NewServer(metricsserver.Options{BindAddress: address}, mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return errors.Wrap(err, "cannot make the metrics server for callers without a token")
	}
	return errors.Wrap(mgr.Add(server), "cannot add the metrics server for callers without a token")
}
