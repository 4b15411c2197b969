package app

import (
	"os"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// openAppContext opens the etcd with the AppContexts, if one is configured, and watches the files with its credentials. The caller
// closes the store.
func (c *controller) openAppContext() (err error) {
	config := c.config.AppContext
	if config == nil {
		return nil
	}
	watch, err := c.restartOnChange(c.logger.WithName("appcontext"), config.UsernameFile, config.PasswordFile, config.CAFile)
	if err != nil {
		return errors.Wrap(err, "cannot read a file of the configuration")
	}
	if c.store, err = OpenAppContext(config); err != nil {
		return err
	}
	return errors.Wrap(c.mgr.Add(watch), "cannot watch the files of appContext")
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
