// Package member sees processes of a run die: it gossips names and addresses over
// hashicorp/memberlist.
//
// # Model
//
// What it says is a hint. A member may be reported dead and be alive, or be
// listed and be gone, for as long as the network, a paused process or a saturated
// machine makes it look so; two members may disagree. Who may write is decided by
// leases and their fencing numbers alone. A hint saves time: a coordinator ends a
// dead worker's lease early, a worker finds a coordinator that was restarted.
// Nothing here fails a run: after [Join] no call returns an error.
//
// Every process start is a new member with a new name ([NewName]): gossip orders
// news of one name by a counter that a restart would begin again, so that old news
// of the name would win over the new process.
//
// memberlist does not tell a member that says goodbye from one that fell silent.
// The metadata does: [Group.Drain] announces that the member is about to go, and
// of one that vanishes after that nobody is told. A member that dies while it
// drains counts as one that has left.
//
// A group looks for its seeds until they are among the members, and again when
// they no longer are, asking anew where they are each time: the coordinator may
// start later than its workers, and be restarted elsewhere. Two halves of a group
// that lost each other for long find together again in the same way.
//
// # Algorithm
//
// SWIM with Lifeguard's suspicion, as memberlist implements it, with calm
// settings: they were chosen on workers whose cores are all busy, which answer
// late and are not dead. The constants in calm.go give each with its reason. Five
// processes on one core took 15 s to agree that one of them was killed.
//
// With a 32-byte key, packets and streams are AES-256-GCM; who has another key or
// none is not heard.
//
// # Memory
//
// A few kilobytes a member, and 64 KiB of packet buffer.
//
// # Not supported
//
// Address translation between members, and changing the key of a group that runs.
package member
