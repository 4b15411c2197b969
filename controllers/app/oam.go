package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// setupOAM adds to a manager the controller that maintains the references of scopes for ApplicationConfigurations, and the one
// that writes the health of Applications, each if it is enabled.
func setupOAM(ctx context.Context, mgr *term, config *configv1alpha1.Configuration) error {
	if config.OAM.ApplicationConfigurations {
		if err := oam.Setup(ctx, mgr, oam.Options{LabelServices: config.OAM.LabelServices}); err != nil {
			return err
		}
	}
	if config.OAM.WriteApplicationHealth {
		return oam.SetupApplications(ctx, mgr, oam.ApplicationOptions{Metrics: mgr})
	}
	return nil
}

// checkReadable returns a check that fails when a kind that the controller is configured to watch cannot be read.
func checkReadable(config *configv1alpha1.Configuration) func(context.Context, client.Reader) error {
	return func(ctx context.Context, reader client.Reader) error {
		err := scope.CheckReadable(ctx, reader)
		if err == nil && config.OAM.ApplicationConfigurations {
			err = oam.CheckReadable(ctx, reader, oam.ApplicationConfigurationKind)
		}
		if err == nil && config.OAM.WriteApplicationHealth {
			err = oam.CheckReadable(ctx, reader, kubevela.ApplicationKind)
		}
		return err
	}
}
