package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/access"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/controllers/rsync/server"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// addRsyncServer adds the gRPC server of rsync to every replica, if it is enabled. The server authenticates callers if it serves
// TLS.
func (c *controller) addRsyncServer() error {
	config := c.config.Rsync.GRPC
	if !c.config.Rsync.Enabled || config == nil || config.BindAddress == configv1alpha1.NoServer {
		return nil
	}
	options := server.Options{
		Address: config.BindAddress, Store: c.store, Logger: c.logger.WithName("rsync-server"),
		Enqueue: func(ctx context.Context, id string, event deploy.Event, from string) error {
			return rsync.Enqueue(ctx, c.store, id, event, from, time.Now())
		},
	}
	if config.CertFile != "" {
		guard, err := access.NewGuard(c.mgr.GetConfig(), c.mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		options.Guard = guard
		if options.TLS, err = c.rsyncTLS(config, options.Logger); err != nil {
			return err
		}
	}
	return errors.Wrap(c.mgr.Add(server.New(options)), "cannot add rsync's gRPC server")
}

// rsyncTLS returns the TLS configuration of the gRPC server, and adds to the manager watches on its files.
func (c *controller) rsyncTLS(config *configv1alpha1.RsyncGRPC, logger logr.Logger) (*tls.Config, error) {
	tlsConfig, err := servingTLSConfig(c.mgr, config.CertFile, config.KeyFile, "rsync's gRPC server")
	if err != nil || config.ClientCAFile == "" {
		return tlsConfig, err
	}
	watch, err := c.restartOnChange(logger, config.ClientCAFile)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read rsync.grpc.clientCAFile")
	}
	authorities, err := os.ReadFile(config.ClientCAFile)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read rsync.grpc.clientCAFile")
	}
	tlsConfig.ClientCAs, tlsConfig.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven // Callers without a certificate send a token.
	if !tlsConfig.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, errors.Errorf("the file %q of rsync.grpc.clientCAFile holds no certificate", config.ClientCAFile)
	}
	return tlsConfig, errors.Wrap(c.mgr.Add(watch), "cannot watch rsync.grpc.clientCAFile")
}
