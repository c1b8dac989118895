package upstream

// SuperviseArg is the first argument that makes a program run [SuperviseMain]
// with the arguments that follow. It is no subcommand that a user should see.
const SuperviseArg = "__supervise"

// Bytes that a supervisor takes from its control pipe. The end of the pipe
// means terminate, and a second later kill: its owner is dead.
const (
	controlTerminate = 'T'
	controlKill      = 'K'
)

// superviseFD is the descriptor of the control pipe in a supervisor.
const superviseFD = 3
