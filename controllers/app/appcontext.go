package app

import (
	"crypto/sha256"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// addAppContext opens the etcd with the AppContexts, and adds to the manager a watch on the files with its credentials. It
// returns nil when no etcd is configured. The caller closes the store.
func addAppContext(mgr ctrl.Manager, config *configv1alpha1.AppContext, stop func(), logger logr.Logger) (*appcontext.Store, error) {
	if config == nil {
		return nil, nil //nolint:nilnil // No store is configured.
	}
	digests, err := fileDigests(config.UsernameFile, config.PasswordFile, config.CAFile)
	if err != nil {
		return nil, err
	}
	store, err := OpenAppContext(config)
	if err != nil || len(digests) == 0 {
		return store, err
	}
	return store, errors.Wrap(mgr.Add(everyReplica(watchCredentials(digests, stop, logger).Start)), "cannot watch the files of appContext")
}

// watchCredentials returns a watch that stops the program when the contents of a file no longer have the given digest.
func watchCredentials(digests map[string][sha256.Size]byte, stop func(), logger logr.Logger) *fileWatch {
	return &fileWatch{paths: slices.Sorted(maps.Keys(digests)), logger: logger, changed: func() {
		for path, initial := range digests {
			data, err := os.ReadFile(path)
			if err != nil {
				logger.Error(err, "Cannot read a file; what was in it before stays in use", "file", path)
			} else if sha256.Sum256(data) != initial {
				logger.Info("A file has changed; exiting to be restarted with it", "file", path)
				stop()
			}
		}
	}}
}

// fileDigests returns the digests of files, by path. It skips empty paths.
func fileDigests(paths ...string) (map[string][sha256.Size]byte, error) {
	digests := map[string][sha256.Size]byte{}
	for _, path := range paths {
		if path == "" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read a file of the configuration")
		}
		digests[path] = sha256.Sum256(data)
	}
	return digests, nil
}

// OpenAppContext opens the etcd with the AppContexts. It does not wait for etcd.
func OpenAppContext(config *configv1alpha1.AppContext) (*appcontext.Store, error) {
	username, err := credential(config.UsernameFile)
	if err != nil {
		return nil, err
	}
	password, err := credential(config.PasswordFile)
	if err != nil {
		return nil, err
	}
	return appcontext.Open(appcontext.Options{
		Endpoints: config.Endpoints, Username: username, Password: password,
		CAFile: config.CAFile, CertFile: config.CertFile, KeyFile: config.KeyFile, Timeout: seconds(config.TimeoutSeconds),
	})
}

// credential reads a user or password from a file, which may end in a line feed.
func credential(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "cannot read a credential of appContext")
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return "", errors.Errorf("the file %q of appContext is empty", path)
	}
	return text, nil
}
