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

// MaxSize is the size in bytes beyond which a kubeconfig is refused unread.
const MaxSize = 256 << 10

// Defaults of Options.
const (
	DefaultQPS       = 20
	DefaultBurst     = 30
	DefaultTimeout   = 30 * time.Second
	DefaultUserAgent = "healthscope"
)

// Options are how the hub talks to a member. The zero value has the defaults.
type Options struct {
	// QPS is how many requests are sent to the member in a second, by all clients together. The default is DefaultQPS.
	QPS float32
	// Burst is how many may be sent at once. The default is DefaultBurst.
	Burst int
	// Timeout is the deadline of a request, its answer included; of a watch, until it begins. The default is DefaultTimeout.
	Timeout time.Duration
	// UserAgent is the User-Agent of requests. The default is DefaultUserAgent.
	UserAgent string
}

// Parse is Options.Parse with the defaults.
func Parse(data []byte) (*rest.Config, error) { return Options{}.Parse(data) }

// Parse returns how to talk to the cluster of a kubeconfig's current context.
// It reads no file, runs no program and connects to nothing.
//
// The error names every field that is refused, also of clusters and users that
// the current context does not use, with its value where that cannot be a
// secret. These are refused: exec, auth-provider, paths of files, proxy-url,
// insecure-skip-tls-verify, impersonation, user names with passwords, servers
// that are not https or have user information, a query or a fragment, a current
// context that is missing, and users without credentials.
//
// With the configuration, all clients share one limit of requests and one pool
// of connections, that of its Transport, which net.CloseIdleConnectionsFor of
// apimachinery closes. A redirect, an answer of more than 32 MiB, an error of
// more than 64 KiB and a watch event of more than 4 MiB are errors; a
// connection on which nothing comes back is given up within 15 seconds.
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
		return nil, errors.Wrap(summary(problems), "cannot use the kubeconfig")
	}
	return o.restConfig(member), nil
}

// member is the part of a kubeconfig that counts, checked.
type member struct {
	cluster      clientcmdapi.Cluster
	user         clientcmdapi.AuthInfo
	authorities  *x509.CertPool // nil for those of the system
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
		Transport: &guard{next: transport, limits: defaultLimits(cmp.Or(o.Timeout, DefaultTimeout))},
	}
}

// lineOf finds the line that a YAML error is about. The rest of such an error may quote the file, and with it a secret.
var lineOf = regexp.MustCompile(`\bline (\d+)\b`)

// decode reads a kubeconfig as YAML or JSON. The decoder of client-go is not used: its errors hold the whole of what it reads.
func decode(data []byte) (*clientcmdapi.Config, error) {
	config := &clientcmdapi.Config{}
	err := yaml.Unmarshal(data, config)
	if err == nil {
		return config, nil
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return nil, errors.Errorf("%s must be a %s", shown(wrongType.Field), wrongType.Type.Kind())
	}
	if line := lineOf.FindStringSubmatch(err.Error()); line != nil {
		return nil, errors.Errorf("it is no YAML: see line %s", line[1])
	}
	return nil, errors.New("it is no YAML or JSON of kind Config")
}

// WithToken returns a kubeconfig in which the user of the current context has
// another token, and everything else that Parse reads is as it was.
func WithToken(data []byte, token string) ([]byte, error) {
	config, err := decode(data)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the kubeconfig")
	}
	i := indexOfUser(config)
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
	if i := indexOfUser(config); i >= 0 {
		return config.AuthInfos[i].AuthInfo.Token, nil
	}
	return "", nil
}

func indexOfUser(config *clientcmdapi.Config) int {
	i := slices.IndexFunc(config.Contexts, func(c clientcmdapi.NamedContext) bool { return c.Name == config.CurrentContext })
	if i < 0 {
		return -1
	}
	name := config.Contexts[i].Context.AuthInfo
	return slices.IndexFunc(config.AuthInfos, func(u clientcmdapi.NamedAuthInfo) bool { return u.Name == name })
}

// Member is what a kubeconfig of New says.
type Member struct {
	// Name is the name of the cluster, its user and the context.
	Name string
	// Server is the URL of the API server.
	Server string
	// TLSServerName is the name in the server's certificate, if it is another than that in the URL.
	TLSServerName string
	// Authority is the certificate of the authority that the server's certificate is checked against, as PEM. None means those of the system.
	Authority []byte
	// Token is the bearer token.
	Token string
}

// New returns a kubeconfig that Parse accepts if the values are fit for it.
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
