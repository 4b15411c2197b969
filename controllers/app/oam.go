package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/controllers/scope"
)

// setupOAM adds to a manager what keeps references of scopes for ApplicationConfigurations, if that is wanted.
func setupOAM(mgr *term, config *configv1alpha1.Configuration) error {
	if !config.OAM.ApplicationConfigurations {
		return nil
	}
	return oam.Setup(mgr, oam.Options{LabelServices: config.OAM.LabelServices})
}

// checkReadable returns what reports why the kinds that the controller watches by its configuration cannot be read.
func checkReadable(config *configv1alpha1.Configuration) func(context.Context, client.Reader) error {
	return func(ctx context.Context, reader client.Reader) error {
		err := scope.CheckReadable(ctx, reader)
		if err == nil && config.OAM.ApplicationConfigurations {
			err = oam.CheckReadable(ctx, reader)
		}
		return err
	}
}
