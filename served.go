package ndls

import (
	"context"
	"encoding/json"

	"ndls/coordinator"
	"ndls/internal/control"
)

// served is a scheduler as workers and ndls status see it from elsewhere.
type served struct {
	control.Service
	scheduler *coordinator.Scheduler
}

// Status implements rpc.Statuser.
func (s *served) Status(context.Context) ([]byte, error) { return json.Marshal(s.scheduler.Status()) }
