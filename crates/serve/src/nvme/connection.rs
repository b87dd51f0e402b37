//! A connection of an NVMe host: one queue, once it has connected one.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use leyden_nvme::tcp::{self, Fatal, Pdu, Terms};
use leyden_nvme::wire::{SGL_IN_CAPSULE, SGL_TRANSPORT, Sqe};
use leyden_nvme::{Connected, FabricsCommand, Io, Status, TRANSFER_MOST, Transfer};

use super::CutMode;
use super::authentication::{Authentication, REQUIRED};
use super::error::ConnectionError;
use super::house::Shared;
use super::io::Command;
use super::reply::{Head, Replier, Tcp, Way as ReplyWay};
use super::transfers::{Arrived, Coming, Transfers};
use super::{admin, io};
use crate::budget::COMMANDS_MOST;
use crate::listen::Socket;
use crate::negotiating::Negotiating;
use crate::owner::Handle;
use crate::session::{Encoded, Outbox, Protocol, Turn};
use crate::stream::Stream;

/// Data that an admin command takes at most.
const ADMIN_MOST: usize = 4_096;

/// The way to the client, once the session has begun.
struct Way {
    out: Outbox,
    socket: Socket,
}

/// See the module.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    terms: Terms,
    address: Option<(IpAddr, u16)>,
    /// Power cuts before it began.
    cuts: u64,
    way: Option<Way>,
    /// The queue, and its number among connections.
    queue: Option<(Connected, u64)>,
    authentication: Authentication,
    head: Arc<Head>,
    transfers: Transfers,
    /// The header of the PDU that is looked at.
    pdu: Vec<u8>,
}

/// A PDU, the command in it if that is one for a namespace, and the room that it needs.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pdu: Pdu,
    io: Option<Result<Io, Status>>,
    reply_bytes: usize,
}

impl Protocol for Connection {
    type Request = Request;
    type Error = ConnectionError;
    type Front = Arc<Shared>;
    const HEAD_BYTES: usize = tcp::COMMON_BYTES;
    const NEGOTIATION: Duration = Duration::from_secs(10);
    /// As many as a queue has: data of a command may come behind all commands that the host has sent since.
    const COMMANDS_FIRST: usize = COMMANDS_MOST;

    fn handshake(
        stream: &mut Negotiating<'_, Stream>,
        shared: &Arc<Shared>,
        _: &[Handle],
    ) -> Result<Option<Self>, ConnectionError> {
        if shared.is_dark() && matches!(shared.cut, CutMode::Lost | CutMode::Hang) {
            return Ok(None);
        }
        let cuts = shared.cuts();
        let address = stream.socket().local().map(|it| (it.ip(), it.port()));
        let mut request = [0; tcp::INITIALISE_BYTES];
        stream.read_exact(&mut request)?;
        match Terms::of_host(&request) {
            Ok(terms) => {
                stream.write_all(&tcp::initialise(terms))?;
                let (shared, transfers) = (Arc::clone(shared), Transfers::default());
                let (head, pdu) = (Arc::default(), Vec::new());
                let (way, queue, authentication) = (None, None, Authentication::default());
                Ok(Some(Self {
                    shared,
                    terms,
                    address,
                    cuts,
                    way,
                    queue,
                    authentication,
                    head,
                    transfers,
                    pdu,
                }))
            }
            Err(fatal) => {
                let _ = stream.write_all(&tcp::terminate(fatal, &request)); // it goes anyway
                Err(fatal.into())
            }
        }
    }

    fn begin(&mut self, out: &Outbox, socket: &Socket) {
        self.way = Some(Way { out: out.clone(), socket: socket.clone() });
    }

    fn end(&mut self) {
        self.transfers.clear();
    }

    fn head_bytes(&mut self, first: &[u8]) -> Result<usize, ConnectionError> {
        let first = first.first_chunk().ok_or(Fatal::SEQUENCE)?;
        tcp::header_bytes(first, self.terms).map_err(|fatal| self.terminate(fatal, first))
    }

    fn parse(&mut self, head: &[u8]) -> Result<Option<Request>, ConnectionError> {
        if self.transfers.is_overdue() {
            return Err(ConnectionError::Overdue);
        }
        self.pdu.clear();
        self.pdu.extend(head);
        let is_io = self.queue.is_some_and(|(queue, _)| queue.queue > 0);
        let capsule = if is_io { tcp::IN_CAPSULE_MOST } else { tcp::ADMIN_CAPSULE_MOST };
        let pdu = Pdu::parse(head, self.terms, capsule);
        let pdu = pdu.map_err(|fatal| self.terminate(fatal, head))?;
        let (mut io, mut reply_bytes) = (None, 0);
        match pdu {
            Pdu::Terminate { .. } => return Ok(None),
            Pdu::Data { cid, tag, offset, length, .. } => {
                let is_right = self.transfers.check(cid, tag, offset, length);
                is_right.map_err(|fatal| self.terminate(fatal, head))?;
            }
            Pdu::Command { sqe, .. } => {
                let parse = || Io::parse(&self.shared.namespaces, &sqe);
                io = (is_io && !sqe.is_fabrics()).then(parse);
                let passing = io.and_then(Result::ok).map_or(0, |io| io.passing_bytes());
                reply_bytes = passing.max(bytes_to_host(&sqe));
            }
        }
        Ok(Some(Request { pdu, io, reply_bytes }))
    }

    fn is_known(&self) -> bool {
        self.queue.is_some() && self.authentication.is_done()
    }

    fn payload_bytes(request: &Request) -> Result<usize, ConnectionError> {
        Ok(request.pdu.follows())
    }

    fn reply_bytes(request: &Request, _: &[Handle]) -> usize {
        request.reply_bytes
    }

    fn has_room(request: &Request) -> bool {
        matches!(request.pdu, Pdu::Data { .. })
    }

    fn payload_so_far(&mut self, request: &Request) -> Vec<u8> {
        match request.pdu {
            Pdu::Data { tag, .. } => self.transfers.so_far(tag),
            _ => Vec::new(),
        }
    }

    fn turn(
        &mut self,
        request: Request,
        mut payload: Vec<u8>,
        mut turn: Turn<'_>,
    ) -> Result<(), ConnectionError> {
        match request.pdu {
            Pdu::Command { sqe, .. } => {
                let is_right = self.terms.strip(&mut payload, 0);
                if let Some((queue, _)) = self.queue {
                    self.head.advance(queue.size);
                }
                let replier = self.replier(sqe, &mut turn);
                if is_right {
                    let command = Command { sqe, io: None, data: payload, replier };
                    self.command(command, request.io, &mut turn);
                } else {
                    replier.end(Status::TRANSIENT_TRANSPORT, 0);
                }
            }
            Pdu::Data { tag, offset, .. } => {
                let is_right = self.terms.strip(&mut payload, offset as usize);
                if let Some(arrived) = self.transfers.came(tag, payload, is_right) {
                    let Arrived { sqe, io, data, permit, is_damaged } = arrived;
                    let mut turn = turn.with_permit(permit);
                    let replier = self.replier(sqe, &mut turn);
                    if is_damaged {
                        replier.end(Status::TRANSIENT_TRANSPORT, 0);
                    } else {
                        self.carry_out(Command { sqe, io, data, replier }, &mut turn);
                    }
                    self.invite(&mut turn);
                    return Ok(self.authentication.verdict()?);
                }
            }
            Pdu::Terminate { .. } => {}
        }
        self.invite(&mut turn);
        Ok(self.authentication.verdict()?)
    }

    fn refused(&mut self, request: &Request) -> Encoded {
        let cid = match request.pdu {
            Pdu::Command { sqe, .. } => sqe.cid,
            Pdu::Data { tag, .. } => {
                self.transfers.give_up(tag).map(|it| it.sqe.cid).unwrap_or_default()
            }
            Pdu::Terminate { .. } => 0.into(),
        };
        let status = Status::NO_MEMORY.field().into();
        let cqe = leyden_nvme::wire::Cqe { cid, status, ..Default::default() };
        Encoded::new(tcp::response(self.terms, cqe), Vec::new())
    }
}

/// Bytes that a command's reply may carry: bit 1 of its opcode says whether data goes to the host.
fn bytes_to_host(sqe: &Sqe) -> usize {
    let is_to_host = sqe.opcode & 2 != 0 && sqe.sgl.id == SGL_TRANSPORT;
    if is_to_host { (sqe.sgl.length.get() as usize).min(TRANSFER_MOST) } else { 0 }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some((_, number)) = self.queue {
            self.shared.lock().forget(number);
        }
    }
}

impl Connection {
    /// Ends the connection, and tells the host why.
    fn terminate(&self, fatal: Fatal, head: &[u8]) -> ConnectionError {
        if let Some(way) = &self.way {
            way.out.send(Encoded::new(tcp::terminate(fatal, head), Vec::new()), None);
        }
        fatal.into()
    }

    fn replier(&self, sqe: Sqe, turn: &mut Turn<'_>) -> Replier {
        let way = self.way.as_ref().expect("a session that has begun");
        let (out, socket, head) = (way.out.clone(), way.socket.clone(), Arc::clone(&self.head));
        Replier {
            shared: Arc::clone(&self.shared),
            queue: self.queue.map(|(queue, _)| queue),
            sqe,
            permit: turn.take_permit(),
            way: ReplyWay::Tcp(Tcp { out, socket, terms: self.terms, head }),
        }
    }

    /// A command has come, with the data that came along; and what it asks a namespace for, if it does.
    fn command(&mut self, command: Command, io: Option<Result<Io, Status>>, turn: &mut Turn<'_>) {
        let (sqe, came) = (&command.sqe, command.data.len());
        let sgl = &sqe.sgl;
        let checked = match sgl.id {
            // Fused commands there are not; and metadata has no place over TCP.
            _ if sqe.flags & 0xc3 != 0x40 => Err(Status::INVALID_FIELD),
            SGL_IN_CAPSULE if sgl.address.get() != 0 => Err(Status::SGL_OFFSET),
            SGL_IN_CAPSULE if sgl.length.get() as usize != came => Err(Status::SGL_LENGTH),
            SGL_TRANSPORT if came > 0 => Err(Status::SGL_LENGTH),
            SGL_IN_CAPSULE | SGL_TRANSPORT => {
                self.authentication.admits(sqe).and_then(|()| self.data_of(sqe, io))
            }
            _ => Err(Status::SGL_TYPE),
        };
        let comes_along = sgl.id == SGL_IN_CAPSULE;
        let most = if self.is_admin() { ADMIN_MOST } else { TRANSFER_MOST };
        match checked {
            Err(status) => command.replier.end(status, 0),
            Ok((bytes, io)) if comes_along || bytes == 0 => {
                self.carry_out(Command { io, ..command }, turn);
            }
            Ok((bytes, _)) if bytes > most => command.replier.end(Status::INVALID_FIELD, 0),
            Ok((bytes, io)) => {
                let Command { sqe, mut replier, .. } = command;
                if let Some(permit) = replier.permit.take() {
                    self.transfers.queue(Coming { sqe, io, bytes, permit });
                }
            }
        }
    }

    fn is_admin(&self) -> bool {
        self.queue.is_none_or(|(queue, _)| queue.queue == 0)
    }

    /// Bytes that a host is to be invited to send for a command, if they do not come with it; and what an I/O queue's command
    /// asks for.
    fn data_of(
        &self,
        sqe: &Sqe,
        io: Option<Result<Io, Status>>,
    ) -> Result<(usize, Option<Io>), Status> {
        if sqe.is_fabrics() {
            return Ok((sqe.fabrics().invited_bytes()?, None));
        }
        if self.queue.is_none() {
            return Err(Status::SEQUENCE);
        }
        let length = sqe.sgl.length.get() as usize;
        let Some(io) = io.transpose()? else {
            return match leyden_nvme::transfer(sqe) {
                Transfer::FromHost(bytes) => Ok((bytes, None)),
                Transfer::ToHost(bytes) if bytes > TRANSFER_MOST => Err(Status::INVALID_FIELD),
                _ => Ok((0, None)),
            };
        };
        let bytes = match io.transfer() {
            Transfer::FromHost(bytes) if bytes == length => bytes,
            Transfer::AtLeast(bytes) if bytes <= length => length,
            Transfer::ToHost(bytes) if bytes == length && sqe.sgl.id == SGL_TRANSPORT => 0,
            Transfer::None if length == 0 => 0,
            _ => return Err(Status::SGL_LENGTH),
        };
        Ok((bytes, Some(io)))
    }

    /// Invites the host to send what there is room for. While data of others is to come, no room is waited for: that data
    /// comes behind.
    fn invite(&mut self, turn: &mut Turn<'_>) {
        while let Some((mut coming, is_beside)) = self.transfers.next() {
            let bytes = coming.bytes;
            let room = match coming.permit.try_grow(bytes) {
                Err(_) if is_beside => return self.transfers.put_back(coming),
                Err(_) => turn.grow(&mut coming.permit, bytes),
                room => room,
            };
            let cid = coming.sqe.cid.get();
            let way = self.way.as_ref().expect("a session that has begun");
            if room.is_ok() {
                let tag = self.transfers.invite(coming);
                let invitation = tcp::invite(self.terms, cid, tag, bytes);
                way.out.send(Encoded::new(invitation, Vec::new()), None);
            } else {
                let mut replier = self.replier(coming.sqe, turn);
                replier.permit = Some(coming.permit);
                replier.end(Status::NO_MEMORY, 0);
            }
        }
    }

    /// A command has come with all its data.
    fn carry_out(&mut self, command: Command, turn: &mut Turn<'_>) {
        if command.sqe.is_fabrics() {
            return self.fabrics(command);
        }
        match self.queue {
            None => command.replier.end(Status::SEQUENCE, 0),
            Some((queue, _)) if queue.queue == 0 => {
                admin::carry_out(&self.shared, queue.controller, self.address, command);
            }
            Some((queue, _)) => {
                io::carry_out(&self.shared, queue.controller, command, &mut turn.asks());
            }
        }
    }

    fn fabrics(&mut self, command: Command) {
        let Command { sqe, data, replier, io: _ } = command;
        let shared = Arc::clone(&self.shared);
        let asked = FabricsCommand::parse(&sqe.fabrics());
        let queue = self.queue.map(|(queue, _)| queue);
        match (asked, queue) {
            (Ok(FabricsCommand::Connect), None) => self.connect(&sqe, &data, replier),
            (Err(status), Some(_)) => replier.end(status, 0),
            (_, None) | (Ok(FabricsCommand::Connect), Some(_)) => replier.end(Status::SEQUENCE, 0),
            (Ok(FabricsCommand::AuthenticationSend(_)), Some(_)) => {
                self.authentication.send(&data, replier);
                self.proved();
            }
            (Ok(FabricsCommand::AuthenticationReceive(bytes)), Some(_)) => {
                self.authentication.receive(bytes, replier);
                self.proved();
            }
            (Ok(FabricsCommand::Get(property)), Some(queue)) => {
                if shared.is_dark() && shared.cut == CutMode::Hang {
                    return; // it never ends
                }
                let value = shared.lock().subsystem.property(queue.controller, property);
                let is_dead = shared.is_dark() && shared.cut == CutMode::Dead;
                let ones = if property.is_long { u64::MAX } else { u64::from(u32::MAX) };
                match value {
                    Ok(_) if is_dead => replier.end(Status::SUCCESS, ones),
                    Ok(value) => replier.end(Status::SUCCESS, value),
                    Err(status) => replier.end(status, 0),
                }
            }
            (Ok(FabricsCommand::Set(property, value)), Some(queue)) => {
                let mut state = shared.lock();
                let set = state.subsystem.set_property(queue.controller, property, value);
                drop(state);
                replier.end(set.err().unwrap_or(Status::SUCCESS), 0);
            }
        }
    }

    fn connect(&mut self, sqe: &Sqe, data: &[u8], mut replier: Replier) {
        let mut state = self.shared.lock();
        let connected = state.subsystem.connect(&sqe.fabrics(), data, self.shared.now_ms());
        match connected {
            Ok(queue) => {
                let number = state.register(queue, replier.way.link(), self.cuts);
                self.authentication = Authentication::of(&state, queue);
                drop(state);
                self.queue = Some((queue, number));
                self.proved();
                self.head.advance(queue.size);
                replier.queue = Some(queue);
                let asks = if self.authentication.is_done() { 0 } else { REQUIRED };
                replier.end(Status::SUCCESS, u64::from(queue.controller) | asks);
            }
            Err((status, place)) => {
                drop(state);
                replier.end(status, u64::from(place));
            }
        }
    }

    /// The keeper waits no more for a host that has proved its identity, or need not.
    fn proved(&self) {
        if let Some((_, number)) = self.queue.filter(|_| self.authentication.is_done()) {
            self.shared.lock().proved(number);
        }
    }
}
