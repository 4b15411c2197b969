package app

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/http/pprof"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
)

// newMetricsManager returns a manager that serves metrics and the profiles of the program to callers with a token and, at a
// separate address, metrics only to callers without one.
func newMetricsManager(o *Options, config *configv1alpha1.Metrics, managerOptions ctrl.Options) (ctrl.Manager, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	managerOptions.Metrics = metricsserver.Options{
		BindAddress: config.BindAddress, FilterProvider: access.MetricsFilter, ExtraHandlers: profiles(),
		// Tokens do not go over the network in the clear. Without files the server makes a certificate itself.
		SecureServing: config.CertFile != "" || !configv1alpha1.IsLoopback(config.BindAddress),
		TLSOpts:       []func(*tls.Config){func(c *tls.Config) { c.GetCertificate, c.MinVersion = tlsConfig.GetCertificate, tlsConfig.MinVersion }},
	}
	mgr, err := ctrl.NewManager(o.REST, managerOptions)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the manager")
	}
	if config.BindAddress != configv1alpha1.NoServer && config.CertFile != "" {
		if tlsConfig, err = servingTLSConfig(mgr, config.CertFile, config.KeyFile, "the metrics server"); err != nil {
			return nil, err
		}
	}
	return mgr, addAnonymousMetrics(mgr, config)
}

// servingTLSConfig returns the TLS configuration of a server, and adds to the manager a watcher that reloads its certificate when
// the files change.
func servingTLSConfig(mgr ctrl.Manager, certFile, keyFile, server string) (*tls.Config, error) {
	certificates, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read the certificate of %s", server)
	}
	if err := mgr.Add(certificates); err != nil {
		return nil, errors.Wrapf(err, "cannot watch the certificate of %s", server)
	}
	return &tls.Config{GetCertificate: certificates.GetCertificate, MinVersion: tls.VersionTLS12}, nil
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

// addAnonymousMetrics adds the server for callers without a token, if one is configured. It serves /metrics only.
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
