package commands

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/portforward"
)

const (
	// controllerSelector selects the pods of the controller.
	controllerSelector = "app.kubernetes.io/name=healthscope,app.kubernetes.io/component=controller"
	// apiPortName is the name of the port of the status REST API in a pod, and apiPort its number where the pod does not name it.
	apiPortName, apiPort = "api", 8082
	// statusReader is the ServiceAccount that callers without a token of their own read the status REST API as.
	statusReader = "healthscope-status-reader"
	// statusTokenLifetime is how long a token of it is valid: the least that Kubernetes gives.
	statusTokenLifetime = 10 * time.Minute
)

// controllerClient returns a client for the status REST API of the controller, which is reached by a port-forward.
func (f *statusFlags) controllerClient() (*statusClient, error) {
	config, err := configOf(f.kubeconfig, f.context, "status")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the controller")
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var way http.RoundTripper = controllerPods{config, clientset, f.controllerNamespace}
	if config.BearerToken != "" || config.BearerTokenFile != "" || config.ExecProvider != nil || config.AuthProvider != nil {
		// Certificates and passwords of the kubeconfig prove nothing to the pod.
		if way, err = rest.HTTPWrappersForConfig(config, way); err != nil {
			return nil, err
		}
	} else {
		way = accountTokens{clientset, f.controllerNamespace, f.serviceAccount, way}
	}
	server := &url.URL{Scheme: "https", Host: "healthscope-controller." + f.controllerNamespace}
	return newClientOf(server, way, f.timeout), nil
}

// controllerPods sends requests to a pod of the controller.
type controllerPods struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

// RoundTrip implements http.RoundTripper. Pods come and go, so that each request looks for one.
func (c controllerPods) RoundTrip(r *http.Request) (*http.Response, error) {
	pods, err := c.client.CoreV1().Pods(c.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: controllerSelector})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot find the controller in namespace %q", c.namespace)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isPodReady(pod) {
			continue
		}
		way := portforward.Transport{Config: c.config, Pod: client.ObjectKeyFromObject(pod), Port: apiPortOf(pod)}
		if err := way.Verified(); err != nil {
			return nil, errors.Wrap(err, "a token is not sent")
		}
		r = r.Clone(r.Context())
		r.URL.Host = net.JoinHostPort("localhost", strconv.Itoa(int(way.Port))) // A listener for its own machine answers for no other host.
		r.Host = ""
		answer, err := way.RoundTrip(r)
		return answer, errors.Wrapf(err, "cannot ask pod %q", way.Pod)
	}
	return nil, errors.Errorf("no pod of the controller is ready in namespace %q; --controller-namespace looks in another", c.namespace)
}

func isPodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// apiPortOf returns the port at which a pod serves the status REST API.
func apiPortOf(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == apiPortName {
				return p.ContainerPort
			}
		}
	}
	return apiPort
}

// accountTokens shows tokens of a ServiceAccount, which the caller has the right to request.
type accountTokens struct {
	client          kubernetes.Interface
	namespace, name string
	next            http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Each request has a token of its own, so that none is kept.
func (a accountTokens) RoundTrip(r *http.Request) (*http.Response, error) {
	lifetime := int64(statusTokenLifetime.Seconds())
	answer, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(r.Context(), a.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.Wrapf(err, "the kubeconfig has no token for the controller; with --service-account, name a ServiceAccount of namespace %q that may read the status REST API", a.namespace)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "the kubeconfig has no token for the controller, and cannot get one of ServiceAccount %q", a.namespace+"/"+a.name)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+answer.Status.Token)
	return a.next.RoundTrip(r)
}
