//! The `leyden` command.

fn main() -> std::process::ExitCode {
    leyden::main()
}
