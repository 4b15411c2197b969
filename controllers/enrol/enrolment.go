package enrol

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// AllNamespaces stands for all namespaces that a hub may read.
const AllNamespaces = "*"

const (
	// DefaultTokenLifetime is the default of Enrolment.TokenLifetime.
	DefaultTokenLifetime = 24 * time.Hour
	// MinTokenLifetime is the shortest lifetime that API servers accept
	// (https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/).
	MinTokenLifetime = 10 * time.Minute
	// MaxTokenLifetime is the longest that they accept. They may shorten it.
	MaxTokenLifetime = (1 << 32) * time.Second
)

// Enrolment says how a cluster becomes a member.
type Enrolment struct {
	// Name is the cluster's name in the hub, such as EMCO's <provider>+<cluster>.
	Name string
	// Server is the URL of the member's API server, as the hub reaches it.
	Server string
	// TLSServerName is the name in that server's certificate, if it is another than that in the URL.
	TLSServerName string
	// Authority is the certificate of the authority that the server's certificate is checked against, as PEM. None means those of the system.
	Authority []byte
	// Namespaces are those that the hub may read. None means all.
	Namespaces []string
	// Workloads lets the hub read the workloads that scopes select by labels, in the namespaces in which it may read bundles.
	Workloads bool
	// OAM lets the hub read, in the same namespaces, workloads of OAM and Applications of KubeVela, and the objects that both lead to.
	OAM bool
	// ProbeNamespaces are those in which the hub may probe Services.
	ProbeNamespaces []string
	// DeployNamespaces are those in which the hub may apply AppContexts; AllNamespaces alone means all that it may read.
	DeployNamespaces []string
	// MonitorNamespace is the namespace of the monitor's Lease in the member. Empty means MemberNamespace.
	MonitorNamespace string
	// TokenLifetime is how long a token is valid. Zero means DefaultTokenLifetime.
	TokenLifetime time.Duration
	// SecretNamespace is the namespace of the hub's Secret.
	SecretNamespace string
}

// validCluster matches names that can stand in statuses, metrics, A&AI and, with few changes, in the name of a Secret.
var validCluster = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]{0,251}[A-Za-z0-9])?$`)

// ValidateName returns what is wrong with the name of a cluster.
func ValidateName(cluster string) error {
	if !validCluster.MatchString(cluster) || len(validation.IsDNS1123Subdomain(SecretName(cluster))) > 0 {
		return errors.Errorf("invalid name %q: want 1 to 253 letters, digits, dots, underscores, hyphens and plus signs, with a letter or digit at each end and after each dot, such as provider+edge01", cluster)
	}
	return nil
}

// SecretName returns the name of the Secret of a cluster. Two clusters may have the same; AnnotationClusterName distinguishes them.
func SecretName(cluster string) string {
	return strings.NewReplacer("+", "-", "_", "-").Replace(strings.ToLower(cluster))
}

// Validate returns what is wrong with an enrolment.
func (e Enrolment) Validate() error {
	problems := []error{ValidateName(e.Name)}
	for _, namespace := range slices.Concat(e.Namespaces, e.ProbeNamespaces, e.deployNamespaces()) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			problems = append(problems, errors.Errorf("invalid namespace %q", namespace))
		}
	}
	for _, use := range []struct {
		what       string
		namespaces []string
	}{{"probe in", e.ProbeNamespaces}, {"deploy into", e.deployNamespaces()}} {
		for _, namespace := range use.namespaces {
			if len(e.Namespaces) > 0 && !slices.Contains(e.Namespaces, namespace) {
				problems = append(problems, errors.Errorf("cannot %s namespace %q: it is not among the namespaces that the hub may read", use.what, namespace))
			}
		}
	}
	if len(validation.IsDNS1123Label(e.monitorNamespace())) > 0 {
		problems = append(problems, errors.Errorf("invalid namespace %q of the monitor", e.MonitorNamespace))
	}
	if e.TokenLifetime != 0 && (e.TokenLifetime < MinTokenLifetime || e.TokenLifetime > MaxTokenLifetime) {
		problems = append(problems, errors.Errorf("invalid lifetime %s of the token: want %s to %s", e.TokenLifetime, MinTokenLifetime, MaxTokenLifetime))
	}
	data, err := e.kubeconfig("token")
	if err == nil {
		_, err = kubeconfig.Parse(data) // As the hub will.
	}
	return errors.Join(append(problems, err)...)
}

func (e Enrolment) kubeconfig(token string) ([]byte, error) {
	return kubeconfig.New(kubeconfig.Member{Name: e.Name, Server: e.Server, TLSServerName: e.TLSServerName, Authority: e.Authority, Token: token})
}

// deployNamespaces returns the namespaces in which the hub may apply AppContexts. If DeployNamespaces is set, none means all.
func (e Enrolment) deployNamespaces() []string {
	if slices.Equal(e.DeployNamespaces, []string{AllNamespaces}) {
		return e.Namespaces
	}
	return e.DeployNamespaces
}

func (e Enrolment) monitorNamespace() string { return cmp.Or(e.MonitorNamespace, MemberNamespace) }

// lifetime returns the requested lifetime of a token.
func (e Enrolment) lifetime() time.Duration { return cmp.Or(e.TokenLifetime, DefaultTokenLifetime) }

// Secret returns the Secret by which a hub finds the member, with the given token.
func (e Enrolment) Secret(t Token) (*corev1.Secret, error) {
	data, err := e.kubeconfig(t.Value)
	if err != nil {
		return nil, err
	}
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: managedMeta(e.SecretNamespace, SecretName(e.Name)),
		Data:       map[string][]byte{corev1alpha2.KubeconfigKey: data},
	}
	s.Labels[corev1alpha2.LabelClusterKubeconfig] = "true"
	s.Annotations = map[string]string{corev1alpha2.AnnotationClusterName: e.Name}
	if len(e.Namespaces) > 0 {
		s.Annotations[corev1alpha2.AnnotationNamespaces] = strings.Join(slices.Sorted(slices.Values(e.Namespaces)), ",")
	}
	t.annotate(s)
	return s, nil
}

// Preview returns the Secret as a readable manifest: its content as text, with a placeholder for the token.
func (e Enrolment) Preview() (*corev1.Secret, error) {
	s, err := e.Secret(Token{Value: "TOKEN"})
	if err != nil {
		return nil, err
	}
	delete(s.Annotations, corev1alpha2.AnnotationTokenExpires)
	s.Annotations[corev1alpha2.AnnotationTokenLifetime] = e.lifetime().String()
	s.StringData = map[string]string{corev1alpha2.KubeconfigKey: string(s.Data[corev1alpha2.KubeconfigKey])}
	s.Data = nil
	return s, nil
}
