package appcontext

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Defaults of Options.
const (
	defaultTimeout = 5 * time.Second
	// defaultMaxRequestBytes is what etcd takes unless it is started with another --max-request-bytes.
	defaultMaxRequestBytes  = 1536 << 10
	defaultProgressInterval = 2 * time.Second
)

// Options say which etcd to speak to, and how.
type Options struct {
	// Endpoints are the URLs of etcd's members, such as https://etcd-0:2379. EMCO's etcd is at http://<host>:2379.
	Endpoints []string
	// Username and Password are those of etcd's own users. Both or neither must be set.
	Username, Password string
	// CAFile is a file with the certificates, in PEM, of the authorities that etcd's certificate is checked against. The default is the system's.
	CAFile string
	// CertFile and KeyFile are files with our own certificate and its key, in PEM, for an etcd that wants one. Both or neither must be set. They are read again for every connection.
	CertFile, KeyFile string
	// ServerName is the name in etcd's certificate, if it is another than the endpoint's.
	ServerName string
	// Timeout is the deadline of one call. The default is 5 seconds. A deadline of the caller's counts when it is earlier.
	Timeout time.Duration
	// MaxRequestBytes is the largest request that etcd takes (its flag --max-request-bytes). The default is etcd's, 1.5 MiB.
	MaxRequestBytes int
	// ProgressInterval is the time between two requests for the progress of a watch. A watch that does not answer for five
	// times as long is begun again. The default is 2 seconds.
	ProgressInterval time.Duration
}

// String returns the options without the password.
func (o Options) String() string {
	return fmt.Sprintf("etcd %q as user %q", o.Endpoints, o.Username)
}

// GoString is String, so that %#v does not show the password.
func (o Options) GoString() string { return o.String() }

func (o *Options) setDefaults() {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxRequestBytes = cmp.Or(o.MaxRequestBytes, defaultMaxRequestBytes)
	o.ProgressInterval = cmp.Or(o.ProgressInterval, defaultProgressInterval)
}

// validate reports the first option that cannot be used.
func (o *Options) validate() error {
	if len(o.Endpoints) == 0 {
		return errors.New("option Endpoints must name at least one URL, such as http://etcd:2379")
	}
	for _, endpoint := range o.Endpoints {
		if err := o.checkEndpoint(endpoint); err != nil {
			return err
		}
	}
	switch {
	case (o.Username == "") != (o.Password == ""):
		return errors.New("options Username and Password must both be set, or neither")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("options CertFile and KeyFile must both be set, or neither")
	case o.Timeout < 0:
		return fmt.Errorf("option Timeout %s must not be negative", o.Timeout)
	case o.ProgressInterval < 0:
		return fmt.Errorf("option ProgressInterval %s must not be negative", o.ProgressInterval)
	case o.MaxRequestBytes < 1<<10:
		return fmt.Errorf("option MaxRequestBytes %d must be at least 1024", o.MaxRequestBytes)
	}
	return nil
}

func (o *Options) checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("option Endpoints must be http or https URLs, such as http://etcd:2379")
	case u.User != nil:
		return fmt.Errorf("endpoint %q must not hold a user or password", u.Redacted())
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("endpoint %q must be scheme, host and port only", endpoint)
	case !strings.HasPrefix(o.Endpoints[0], u.Scheme+":"):
		return fmt.Errorf("endpoint %q must have the same scheme as %q", endpoint, o.Endpoints[0])
	case u.Scheme == "http" && (o.CAFile != "" || o.CertFile != "" || o.ServerName != ""):
		return fmt.Errorf("endpoint %q must begin with https, because there are options for TLS", endpoint)
	}
	return nil
}

// tls returns how to speak TLS, nil when no endpoint wants it. Our own certificate is read now, to say early what is wrong
// with it, and again for every connection, because certificates are renewed while programs run.
func (o *Options) tls() (*tls.Config, error) {
	u, err := url.Parse(o.Endpoints[0])
	if err != nil || u.Scheme != "https" {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CertFile != "" {
		certificate := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("cannot read CertFile %q and KeyFile %q: %w", o.CertFile, o.KeyFile, err)
			}
			return &pair, nil
		}
		if _, err := certificate(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = certificate
	}
	if o.CAFile == "" {
		return config, nil
	}
	data, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read CAFile: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("cannot read CAFile %q: it holds no certificate", o.CAFile)
	}
	return config, nil
}
