//! Joins and selects that give the same in replay.
//!
//! Branches are polled in the order given, and of those that are ready at once the first wins: nothing is left to
//! chance. Joins and selects of many poll only the branches whose results have come. A branch that waits for something
//! else than its context fails the execution even if the other branches wait rightly.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::failure::Failure;
use crate::model::context::Ctx;
use crate::model::scope::Ready;
use crate::model::shared::Shared;

/// Winner of a race of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// The first.
    Left(A),
    /// The second.
    Right(B),
}

impl Ctx {
    /// Waits for all; the results are in the order given.
    pub fn join_all<F: Future>(&self, futures: Vec<F>) -> JoinAll<F> {
        JoinAll::new(&self.shared, futures)
    }

    /// Waits for both.
    pub fn join2<A: Future, B: Future>(&self, a: A, b: B) -> Join2<A, B> {
        Join2 { shared: Rc::clone(&self.shared), a: Part::new(a), b: Part::new(b) }
    }

    /// Waits for all three.
    pub fn join3<A: Future, B: Future, C: Future>(&self, a: A, b: B, c: C) -> Join3<A, B, C> {
        Join3 { shared: Rc::clone(&self.shared), a: Part::new(a), b: Part::new(b), c: Part::new(c) }
    }

    /// Waits for one of the two and drops the other. To keep the other, give `&mut` of it.
    pub fn select2<A: Future, B: Future>(&self, a: A, b: B) -> Select2<A, B> {
        Select2 { shared: Rc::clone(&self.shared), a: Some(Box::pin(a)), b: Some(Box::pin(b)) }
    }

    /// Waits for one of many: gives its place, its value and the others, which may be selected from again. None at all
    /// fails the execution, as it would wait for ever.
    pub fn select_all<F: Future + Unpin>(&self, futures: Vec<F>) -> SelectAll<F> {
        SelectAll { shared: Rc::clone(&self.shared), futures, ready: None }
    }
}

/// Polls one branch and sees to it that it waits for its own context, if it waits.
fn poll_branch<T>(shared: &Shared, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    let was_waiting = std::mem::replace(&mut shared.state_mut().is_waiting, false);
    let polled = poll();
    let is_foreign = polled.is_pending() && !shared.state().is_waiting;
    if is_foreign {
        fail(shared, shared.foreign());
    }
    shared.state_mut().is_waiting |= was_waiting;
    polled
}

fn fail(shared: &Shared, failure: Failure) {
    let fatal = &mut shared.state_mut().fatal;
    if fatal.is_none() {
        *fatal = Some(Box::new(failure));
    }
}

/// One side of a join.
struct Part<F: Future> {
    run: Option<Pin<Box<F>>>,
    output: Option<F::Output>,
}

impl<F: Future> Part<F> {
    fn new(future: F) -> Self {
        Self { run: Some(Box::pin(future)), output: None }
    }

    fn poll(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<()> {
        let Some(run) = &mut self.run else { return Poll::Ready(()) };
        let Poll::Ready(output) = poll_branch(shared, || run.as_mut().poll(context)) else { return Poll::Pending };
        self.run = None;
        self.output = Some(output);
        Poll::Ready(())
    }
}

/// Waits for two; see [`Ctx::join2`].
#[must_use = "nothing happens before it is awaited"]
pub struct Join2<A: Future, B: Future> {
    shared: Rc<Shared>,
    a: Part<A>,
    b: Part<B>,
}

impl<A: Future, B: Future> Unpin for Join2<A, B> {}

impl<A: Future, B: Future> Future for Join2<A, B> {
    type Output = (A::Output, B::Output);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, a, b } = &mut *self;
        let is_pending = [a.poll(shared, context), b.poll(shared, context)].iter().any(Poll::is_pending);
        match (is_pending, a.output.take(), b.output.take()) {
            (false, Some(a), Some(b)) => Poll::Ready((a, b)),
            (_, first, second) => {
                (a.output, b.output) = (first, second);
                Poll::Pending
            }
        }
    }
}

/// Waits for three; see [`Ctx::join3`].
#[must_use = "nothing happens before it is awaited"]
pub struct Join3<A: Future, B: Future, C: Future> {
    shared: Rc<Shared>,
    a: Part<A>,
    b: Part<B>,
    c: Part<C>,
}

impl<A: Future, B: Future, C: Future> Unpin for Join3<A, B, C> {}

impl<A: Future, B: Future, C: Future> Future for Join3<A, B, C> {
    type Output = (A::Output, B::Output, C::Output);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, a, b, c } = &mut *self;
        let polled = [a.poll(shared, context), b.poll(shared, context), c.poll(shared, context)];
        let is_pending = polled.iter().any(Poll::is_pending);
        match (is_pending, a.output.take(), b.output.take(), c.output.take()) {
            (false, Some(a), Some(b), Some(c)) => Poll::Ready((a, b, c)),
            (_, first, second, third) => {
                (a.output, b.output, c.output) = (first, second, third);
                Poll::Pending
            }
        }
    }
}

/// Waits for one of two; see [`Ctx::select2`].
#[must_use = "nothing happens before it is awaited"]
pub struct Select2<A, B> {
    shared: Rc<Shared>,
    a: Option<Pin<Box<A>>>,
    b: Option<Pin<Box<B>>>,
}

impl<A: Future, B: Future> Future for Select2<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, a: Some(a), b: Some(b) } = &mut *self else { return Poll::Pending };
        let won = match poll_branch(shared, || a.as_mut().poll(context)) {
            Poll::Ready(value) => Either::Left(value),
            Poll::Pending => match poll_branch(shared, || b.as_mut().poll(context)) {
                Poll::Ready(value) => Either::Right(value),
                Poll::Pending => return Poll::Pending,
            },
        };
        self.a = None;
        self.b = None;
        Poll::Ready(won)
    }
}

/// Waits for many; see [`Ctx::join_all`].
#[must_use = "nothing happens before it is awaited"]
pub struct JoinAll<F: Future> {
    shared: Rc<Shared>,
    runs: Vec<Option<Pin<Box<F>>>>,
    outputs: Vec<Option<F::Output>>,
    running: usize,
    ready: Option<Rc<Ready>>,
    spare: Vec<u32>,
}

impl<F: Future> JoinAll<F> {
    fn new(shared: &Rc<Shared>, futures: Vec<F>) -> Self {
        let running = futures.len();
        let runs = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
        let outputs = (0..running).map(|_| None).collect();
        let this = Self { shared: Rc::clone(shared), runs, outputs, running, ready: None, spare: Vec::new() };
        shared.state_mut().bytes += this.bytes();
        this
    }

    /// About how many bytes it holds; the same for as long as it lives.
    fn bytes(&self) -> usize {
        self.runs.len() * (size_of::<F>() + size_of::<Option<F::Output>>() + size_of::<usize>())
    }

    fn poll_place(&mut self, ready: &Rc<Ready>, place: u32, context: &mut Context<'_>) {
        let at = place as usize;
        let Some(run) = self.runs.get_mut(at).and_then(Option::as_mut) else { return };
        let outer = self.shared.state_mut().branch.replace(ready.branch(place));
        let polled = poll_branch(&self.shared, || run.as_mut().poll(context));
        self.shared.state_mut().branch = outer;
        if let Poll::Ready(output) = polled {
            self.runs[at] = None;
            self.outputs[at] = Some(output);
            self.running -= 1;
        }
    }
}

impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let is_first = this.ready.is_none();
        let ready = Rc::clone(this.ready.get_or_insert_with(Ready::new));
        ready.set_above(&this.shared.state().branch);
        if is_first {
            for place in 0..u32::try_from(this.runs.len()).unwrap_or(u32::MAX) {
                this.poll_place(&ready, place, context);
            }
        } else {
            let mut places = ready.take(std::mem::take(&mut this.spare));
            for place in places.drain(..) {
                this.poll_place(&ready, place, context);
            }
            this.spare = places;
        }
        if this.running > 0 {
            // Each branch was found waiting rightly when it was polled.
            this.shared.state_mut().is_waiting = true;
            return Poll::Pending;
        }
        Poll::Ready(this.outputs.iter_mut().filter_map(Option::take).collect())
    }
}

impl<F: Future> Drop for JoinAll<F> {
    fn drop(&mut self) {
        let bytes = self.bytes();
        let mut state = self.shared.state_mut();
        state.bytes = state.bytes.saturating_sub(bytes);
    }
}

/// Waits for one of many; see [`Ctx::select_all`].
#[must_use = "nothing happens before it is awaited"]
pub struct SelectAll<F> {
    shared: Rc<Shared>,
    futures: Vec<F>,
    ready: Option<Rc<Ready>>,
}

impl<F: Future + Unpin> SelectAll<F> {
    fn poll_place(&mut self, ready: &Rc<Ready>, place: u32, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = self.futures.get_mut(place as usize) else { return Poll::Pending };
        let outer = self.shared.state_mut().branch.replace(ready.branch(place));
        let polled = poll_branch(&self.shared, || Pin::new(future).poll(context));
        self.shared.state_mut().branch = outer;
        polled
    }
}

impl<F: Future + Unpin> Future for SelectAll<F> {
    type Output = (usize, F::Output, Vec<F>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.futures.is_empty() {
            fail(&this.shared, Failure::application("select_all of no futures waits for ever"));
            return Poll::Pending;
        }
        let is_first = this.ready.is_none();
        let ready = Rc::clone(this.ready.get_or_insert_with(Ready::new));
        ready.set_above(&this.shared.state().branch);
        let count = u32::try_from(this.futures.len()).unwrap_or(u32::MAX);
        let places = if is_first { (0..count).collect() } else { ready.take(Vec::new()) };
        for place in places {
            if let Poll::Ready(output) = this.poll_place(&ready, place, context) {
                let mut rest = std::mem::take(&mut this.futures);
                drop(rest.remove(place as usize));
                return Poll::Ready((place as usize, output, rest));
            }
        }
        this.shared.state_mut().is_waiting = true;
        Poll::Pending
    }
}
