package support

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Options configures what goes into an archive. All fields are required, except for Configuration, IncludeScopes and MetricsToken.
type Options struct {
	// Config configures the clients for the cluster. They have the rights of the caller.
	Config *rest.Config
	// Namespace is the namespace of controller and monitor, and ClustersNamespace that of the Secrets of clusters.
	Namespace, ClustersNamespace string
	// Selector is the label selector for the pods of controller and monitor in Namespace. Logs and metrics are read only from these pods.
	Selector string
	// Version describes the version of the program.
	Version string
	// Configuration is the content of a configuration file; nil for none.
	Configuration []byte
	// ValidateConfiguration validates a configuration file. Its error must contain no passwords.
	ValidateConfiguration func([]byte) error
	// IncludeScopes adds HealthScopes and bundles.
	IncludeScopes bool
	// LogLines is the number of lines that are kept from the end of each container's log.
	LogLines int64
	// MetricsToken is a bearer token that may get /metrics. It is sent to the pods that have a port named metrics, but only through an API server that is
	// verified. No file of the archive contains it. Without it, metrics are read without authentication.
	MetricsToken string
	// Now is the modification time of the files.
	Now time.Time
}

// Result is the result of Write.
type Result struct {
	// Files is the number of files in the archive.
	Files int
	// Problems names what could not be read, and why. The archive contains it too.
	Problems []string
}

// gatherer reads what goes into an archive.
type gatherer struct {
	options  Options
	objects  dynamic.Interface
	metadata metadata.Interface
	client   kubernetes.Interface
	archive  *archive
}

// Write collects the state of an installation and writes it as a .tar.gz file. Write does not return an error for what cannot
// be read because a right is missing or ctx has ended: the archive lists it in errors.txt.
func Write(ctx context.Context, out io.Writer, o Options) (Result, error) {
	objects, objectsErr := dynamic.NewForConfig(o.Config)
	meta, metaErr := metadata.NewForConfig(o.Config)
	client, clientErr := kubernetes.NewForConfig(o.Config)
	if err := cmp.Or(objectsErr, metaErr, clientErr); err != nil {
		return Result{}, errors.Wrap(err, "cannot make a client for the cluster")
	}
	g := &gatherer{options: o, objects: objects, metadata: meta, client: client, archive: newArchive(out, o.Now, o.MetricsToken)}
	g.addVersions(ctx)
	g.addCRDs(ctx)
	g.addConfigurations(ctx)
	g.addClusters(ctx)
	g.addComponents(ctx)
	g.addEvents(ctx)
	if o.IncludeScopes {
		g.addList(ctx, "healthscopes.yaml", healthScopes, "", "", redactMetadata)
		g.addList(ctx, "resourcebundlestates.yaml", bundles, "", "", redactBundle)
	}
	err := g.archive.close()
	return Result{Files: g.archive.files, Problems: g.archive.problems}, err
}
