package support

import (
	"context"
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Options say what goes into an archive. All of them must be given but for MetricsToken.
type Options struct {
	// Config says how to reach the cluster, with the rights of the caller.
	Config *rest.Config
	// Namespace is that of the programs, and ClustersNamespace that of the Secrets of clusters.
	Namespace, ClustersNamespace string
	// Selector selects the programs' pods in Namespace by their labels. Logs and metrics are read of no others.
	Selector string
	// Version is what the program says of itself.
	Version string
	// Configuration is the content of a configuration file; nil for none.
	Configuration []byte
	// Check says what is wrong with a configuration file. What it says holds no passwords.
	Check func([]byte) error
	// Scopes asks for HealthScopes and bundles.
	Scopes bool
	// LogLines is how many lines of the log of each container are kept, the last ones.
	LogLines int64
	// MetricsToken is a bearer token that may get /metrics, which the programs' pods with a port called metrics are shown, if the API server between is one that is verified. It is in no
	// file of the archive. Without it, metrics are those that pods show to everybody.
	MetricsToken string
	// Now is the time that files are dated with.
	Now time.Time
}

// Gathered is what came of it.
type Gathered struct {
	// Files is the number of files in the archive.
	Files int
	// Problems are what could not be read, and why. They are in the archive too.
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

// Write gathers what there is and writes it as a .tar.gz. What cannot be read,
// for want of a right or because ctx ends, is noted in the archive, and is no error.
func Write(ctx context.Context, out io.Writer, o Options) (Gathered, error) {
	g := &gatherer{options: o, archive: newArchive(out, o.Now, o.MetricsToken)}
	for _, connect := range []func() error{
		func() (err error) { g.objects, err = dynamic.NewForConfig(o.Config); return err },
		func() (err error) { g.metadata, err = metadata.NewForConfig(o.Config); return err },
		func() (err error) { g.client, err = kubernetes.NewForConfig(o.Config); return err },
	} {
		if err := connect(); err != nil {
			return Gathered{}, errors.Wrap(err, "cannot make a client for the cluster")
		}
	}
	g.versions(ctx)
	g.definitions(ctx)
	g.configurations(ctx)
	g.clusters(ctx)
	g.programs(ctx)
	g.events(ctx)
	if o.Scopes {
		g.scopes(ctx)
	}
	err := g.archive.close()
	return Gathered{Files: g.archive.files, Problems: g.archive.problems}, err
}
