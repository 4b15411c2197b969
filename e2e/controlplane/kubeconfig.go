package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

const (
	// tokenLife is the validity of the token in a service-account kubeconfig. A day is enough for a demo that runs overnight.
	tokenLife = 24 * time.Hour
	// requestTimeout is the timeout of one request of this package.
	requestTimeout = 30 * time.Second
	// kubectlGrace is the maximum wait for the output of a cancelled kubectl.
	kubectlGrace = 5 * time.Second
)

// KubeconfigPath returns the path of the administrator's kubeconfig file (group system:masters). It exists until Stop.
func (cp *ControlPlane) KubeconfigPath() string {
	return cp.home.file(adminKubeconfig)
}

// ServiceAccountKubeconfig writes a kubeconfig for a program that runs outside the cluster as one of its service
// accounts. The file at path is readable only by its owner, and holds a token from the TokenRequest API that is valid for
// a day. The account must exist. The token becomes invalid when the account is deleted.
func (cp *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name, path string) error {
	clientset, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		return fmt.Errorf("cannot make kubeconfig of service account %q: %w", namespace+"/"+name, err)
	}
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot get token of service account %q: %w", namespace+"/"+name, err)
	}
	user := &api.AuthInfo{Token: answer.Status.Token}
	return writeKubeconfig(path, cp.options.Name, cp.config.Host, cp.config.CAData, user)
}

// Kubectl returns the path of the kubectl program.
func (cp *ControlPlane) Kubectl() string {
	return cp.home.programs.Path(assets.Kubectl)
}

// KubectlCommand returns a command that runs kubectl with args as administrator of this control plane. The command ends
// when ctx is done, and neither reads nor writes kubectl's files in the user's home.
func (cp *ControlPlane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cp.Kubectl(), args...) //nolint:gosec // Running kubectl as asked is what this is for.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.KubeconfigPath(), "KUBECACHEDIR="+cp.home.file("kubectl-cache"), "KUBERC=off")
	cmd.WaitDelay = kubectlGrace
	return cmd
}

// writeKubeconfig writes a kubeconfig with one context, which has the name of the cluster.
func writeKubeconfig(path, cluster, url string, authority []byte, user *api.AuthInfo) error {
	config := api.NewConfig()
	config.Clusters[cluster] = &api.Cluster{Server: url, CertificateAuthorityData: authority}
	config.AuthInfos[cluster] = user
	config.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("cannot write kubeconfig %q: %w", path, err)
	}
	return nil
}
