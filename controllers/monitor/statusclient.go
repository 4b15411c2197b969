package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// fieldOwner names the monitor in managedFields.
	fieldOwner = client.FieldOwner("healthscope-monitor")
	// writeTimeout is the timeout of a write.
	writeTimeout = 30 * time.Second
)

// statusWriter writes the status of bundles.
type statusWriter interface {
	// put replaces the status of a bundle if it still has the UID and resourceVersion of b, and sets the metadata of b to
	// the result. It does not change the status of b: only the cache shows whether the API server pruned it.
	put(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) error
	// mark annotates a bundle that another monitor writes as out of date.
	mark(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, o k8spluginv1alpha1.OutOfDate) error
}

// acceptMetadata is the Accept header that requests only the metadata of an object.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// statusClient writes bundles and requests only the metadata in the responses. The status, which is most of a bundle, arrives with the
// watch anyway, and encoding and decoding it again would be a large part of the cost of a write.
type statusClient struct{ client *rest.RESTClient }

func newStatusClient(config *rest.Config, httpClient *http.Client) (statusClient, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{k8spluginv1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			return statusClient{}, fmt.Errorf("cannot register types: %w", err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // Errors.
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &k8spluginv1alpha1.GroupVersion
	config.AcceptContentTypes, config.ContentType = acceptMetadata, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return statusClient{}, fmt.Errorf("cannot make a client for the status of bundles: %w", err)
	}
	return statusClient{client}, nil
}

// put implements statusWriter.
func (s statusClient) put(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) error {
	var answer metav1.PartialObjectMetadata
	err := s.client.Put().Resource("resourcebundlestates").Namespace(b.Namespace).Name(b.Name).SubResource("status").
		Param("fieldManager", string(fieldOwner)).Body(b).Do(ctx).Into(&answer)
	if err != nil {
		return err
	}
	b.ObjectMeta = answer.ObjectMeta
	return nil
}

// mark implements statusWriter. It changes only the annotation, and nothing if the bundle has been recreated.
func (s statusClient) mark(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, o k8spluginv1alpha1.OutOfDate) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": b.UID, "annotations": map[string]string{k8spluginv1alpha1.AnnotationOutOfDate: o.String()},
	}})
	if err != nil {
		return err
	}
	var answer metav1.PartialObjectMetadata
	return s.client.Patch(types.MergePatchType).Resource("resourcebundlestates").Namespace(b.Namespace).Name(b.Name).
		Param("fieldManager", string(fieldOwner)).Body(patch).Do(ctx).Into(&answer)
}
