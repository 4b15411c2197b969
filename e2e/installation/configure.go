package installation

import "context"

// Configure replaces the settings of Options.Configuration. Running programs notice the change: they apply health rules, and for
// other settings they exit and are restarted.
func (i *Installation) Configure(ctx context.Context, configuration string) error {
	i.options.Configuration = configuration
	if i.options.Helm != nil {
		return i.Upgrade(ctx, i.options.Values...)
	}
	return i.writeConfiguration()
}
