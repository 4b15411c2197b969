package kubeconfig

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/yaml"
)

// MaxSize is the maximum size of a kubeconfig in bytes. Parse refuses a larger one without reading it.
const MaxSize = 256 << 10

// Defaults of Options.
const (
	DefaultQPS       = 20
	DefaultBurst     = 30
	DefaultTimeout   = 30 * time.Second
	DefaultUserAgent = "healthscope"
)

// Options configure the client configuration of a member. The zero value has the defaults.
type Options struct {
	// QPS is the maximum number of requests per second to the member, of all clients together. The default is DefaultQPS.
	QPS float32
	// Burst is the maximum number of requests that are sent at once. The default is DefaultBurst.
	Burst int
	// Timeout is the deadline of a request including its answer; for a watch, until the watch begins. The default is DefaultTimeout.
	Timeout time.Duration
	// UserAgent is the User-Agent of requests. The default is DefaultUserAgent.
	UserAgent string
}

// Parse is Options.Parse with the defaults.
func Parse(data []byte) (*rest.Config, error) { return Options{}.Parse(data) }

// Parse returns the client configuration for the cluster of a kubeconfig's current context.
// It reads no file, runs no program and connects to nothing.
//
// The error lists every field that is refused, including those of clusters and users
// that the current context does not use, with its value unless that may be a
// secret. Parse refuses: exec, auth-provider, paths of files, proxy-url,
// insecure-skip-tls-verify, impersonation, user names with passwords, servers
// that are not https or have user information, a query or a fragment, a current
// context that is missing, and users without credentials.
//
// All clients of the configuration share one rate limiter and one connection pool,
// that of its Transport. net.CloseIdleConnectionsFor of apimachinery closes idle
// connections. A redirect, an answer of more than 32 MiB, an error of
// more than 64 KiB and a watch event of more than 4 MiB are errors; a
// connection that delivers nothing, not even answers to pings, is closed within 15 seconds.
func (o Options) Parse(data []byte) (*rest.Config, error) {
	if len(data) == 0 {
		return nil, errors.New("cannot use the kubeconfig: it is empty")
	}
	if len(data) > MaxSize {
		return nil, errors.Errorf("cannot use the kubeconfig: it has %d bytes, and may have %d", len(data), MaxSize)
	}
	config, err := decode(data)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the kubeconfig")
	}
	member, problems := check(config)
	if len(problems) > 0 {
		return nil, errors.Wrap(aggregate(problems), "cannot use the kubeconfig")
	}
	return o.restConfig(member), nil
}

// member is the validated cluster and user of a kubeconfig's current context.
type member struct {
	cluster      clientcmdapi.Cluster
	user         clientcmdapi.AuthInfo
	authorities  *x509.CertPool // nil for the CAs of the system
	certificates []tls.Certificate
}

func (o Options) restConfig(m *member) *rest.Config {
	qps, burst := cmp.Or(o.QPS, DefaultQPS), cmp.Or(o.Burst, DefaultBurst)
	transport := newTransport(&tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: m.cluster.TLSServerName, RootCAs: m.authorities, Certificates: m.certificates,
	}, m.cluster.DisableCompression)
	return &rest.Config{
		Host:        m.cluster.Server,
		BearerToken: m.user.Token,
		UserAgent:   cmp.Or(o.UserAgent, DefaultUserAgent),
		QPS:         qps,
		Burst:       burst,
		RateLimiter: flowcontrol.NewTokenBucketRateLimiter(qps, burst),
		// The server's warnings would go to the log, unbounded.
		WarningHandler: rest.NoWarnings{},
		// Not Timeout: it would end watches too.
		Transport: &limitedTransport{next: transport, limits: defaultLimits(cmp.Or(o.Timeout, DefaultTimeout))},
	}
}

// yamlErrorLine finds the line number in a YAML error. The rest of the error may quote the file, and thereby a secret.
var yamlErrorLine = regexp.MustCompile(`\bline (\d+)\b`)

// decode reads a kubeconfig as YAML or JSON. It does not use the decoder of client-go, whose errors contain the whole input.
func decode(data []byte) (*clientcmdapi.Config, error) {
	config := &clientcmdapi.Config{}
	err := yaml.Unmarshal(data, config)
	if err == nil {
		return config, nil
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return nil, errors.Errorf("%s must be a %s", sanitized(wrongType.Field), wrongType.Type.Kind())
	}
	if line := yamlErrorLine.FindStringSubmatch(err.Error()); line != nil {
		return nil, errors.Errorf("it is no YAML: see line %s", line[1])
	}
	return nil, errors.New("it is no YAML or JSON of kind Config")
}

// WithToken returns a copy of a kubeconfig in which the user of the current context has
// another token. Everything else that Parse reads stays the same.
func WithToken(data []byte, token string) ([]byte, error) {
	config, err := decode(data)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the kubeconfig")
	}
	i := currentUserIndex(config)
	if i < 0 {
		return nil, errors.New("cannot change the kubeconfig: the current context has no user")
	}
	config.AuthInfos[i].AuthInfo.Token = token
	changed, err := yaml.Marshal(config)
	return changed, errors.Wrap(err, "cannot write the kubeconfig")
}

// Token returns the token of the current context's user; empty when there is none.
func Token(data []byte) (string, error) {
	config, err := decode(data)
	if err != nil {
		return "", errors.Wrap(err, "cannot read the kubeconfig")
	}
	if i := currentUserIndex(config); i >= 0 {
		return config.AuthInfos[i].AuthInfo.Token, nil
	}
	return "", nil
}

// currentUserIndex returns the index in config.AuthInfos of the current context's user; -1 when there is none.
func currentUserIndex(config *clientcmdapi.Config) int {
	i := slices.IndexFunc(config.Contexts, func(c clientcmdapi.NamedContext) bool { return c.Name == config.CurrentContext })
	if i < 0 {
		return -1
	}
	name := config.Contexts[i].Context.AuthInfo
	return slices.IndexFunc(config.AuthInfos, func(u clientcmdapi.NamedAuthInfo) bool { return u.Name == name })
}

// Member is the content of a kubeconfig that New makes.
type Member struct {
	// Name is the name of the cluster, its user and the context.
	Name string
	// Server is the URL of the API server.
	Server string
	// TLSServerName is the name in the server's certificate; empty when it is the host of the URL.
	TLSServerName string
	// Authority is the certificate of the CA that verifies the server's certificate, as PEM. Empty means the CAs of the system.
	Authority []byte
	// Token is the bearer token.
	Token string
}

// New returns a kubeconfig. Parse accepts it if the values are valid.
func New(m Member) ([]byte, error) {
	data, err := yaml.Marshal(clientcmdapi.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: m.Name,
		Clusters: []clientcmdapi.NamedCluster{{Name: m.Name, Cluster: clientcmdapi.Cluster{
			Server: m.Server, TLSServerName: m.TLSServerName, CertificateAuthorityData: m.Authority,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: m.Name, AuthInfo: clientcmdapi.AuthInfo{Token: m.Token}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: m.Name, Context: clientcmdapi.Context{Cluster: m.Name, AuthInfo: m.Name}}},
	})
	return data, errors.Wrap(err, "cannot write the kubeconfig")
}
