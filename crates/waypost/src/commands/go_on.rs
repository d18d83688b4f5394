//! `waypost continue`: goes on with thinking that has not come to its end, in a new process, from the same place.

use clap::Args;
use waypost_engine::thinking::{Order, Stand, Steps, Want};

use super::plan::making::{Making, Saving};
use super::{decompose, digest};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::thinking::{Asked, Bounds, Room, of_order};

const EXAMPLES: &str = "\
Goes on where the last process was: what models have answered is not asked or paid for again.
Bounds that are said now take the place of those that were said before.

Examples:
  waypost continue
  waypost continue kq3
  waypost continue kq3 --budget 200000 --max-depth 6";

// What to go on with.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GoOn {
    /// The plan (otherwise the latest whose thinking is unfinished)
    plan: Option<String>,
    /// Do not open the editor
    #[arg(long)]
    no_edit: bool,
    /// Make one step: until one answer could be used
    #[arg(long)]
    step: bool,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    bounds: Bounds,
}

impl GoOn {
    pub(crate) fn run(mut self, context: &mut Context) -> Outcome {
        let room = Room::enter(context)?;
        let mut order = self.find(context, &room)?;
        order.extent = self.bounds.over(room.held_to(order.extent))?;
        order.stand = Stand::Open;
        order.model = self.asked.model.take().or(order.model);
        self.asked.model.clone_from(&order.model);
        let steps = if self.step { Steps::One } else { Steps::All };
        let is_made = self.is_made(&room, &order)?;
        if is_made {
            room.wake(context, &order.plan)?;
            room.set_budget(context, &order.plan, self.bounds.budget)?;
        }
        let journal = room.journal(&order.plan)?;
        let order = room.order(order, &journal)?;
        room.listen(context)?;
        context.out.say(format!("goes on with plan {}", order.plan));
        match &order.want {
            Want::Plan { .. } => {
                let saving = Saving::Plan { edit: !self.no_edit };
                Making { room, order, journal, asked: self.asked, saving }.run(context)
            }
            Want::Decompose { .. } => {
                decompose::run_and_tell(context, room, (order, journal), &self.asked, steps)
            }
            Want::Digest { .. } => digest::run_and_tell(context, room, (order, journal), &self.asked),
        }
    }

    /// The order that is meant.
    fn find(&self, context: &Context, room: &Room) -> Outcome<Order> {
        let orders = room.orders.all().map_err(|error| of_order(&error))?;
        let Some(word) = &self.plan else {
            let mut open = orders.into_iter().filter(|order| order.stand == Stand::Open);
            let found = open.find(|order| is_current(room, order));
            return found.ok_or_else(|| {
                let message = "no thinking is unfinished";
                Failure::not_found(message, "name the plan; `waypost list` shows the plans")
            });
        };
        // A plan that a model has not written yet is not in the store.
        let unmade = orders.iter().find(|order| order.plan.as_str().starts_with(word.as_str()));
        let id = match (context.find(word), unmade) {
            (Ok(found), _) => found.id,
            (Err(_), Some(order)) => order.plan.clone(),
            (Err(failure), None) => return Err(failure),
        };
        let known = orders.into_iter().find(|order| order.plan == id);
        // Whoever names a plan that nobody has begun to think about wants just that.
        Ok(known.unwrap_or_else(|| Order {
            plan: id,
            want: Want::Decompose { task: None },
            extent: room.extent(),
            model: None,
            calls_before: 0,
            stand: Stand::Open,
        }))
    }

    fn is_made(&self, room: &Room, order: &Order) -> Outcome<bool> {
        match room.plans.look(&order.plan, |_| ()) {
            Ok(()) => Ok(true),
            Err(waypost_store::WriteError::NotFound(_)) if matches!(order.want, Want::Plan { .. }) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether an order is about a plan that can be thought about, or about one that is to be made yet.
fn is_current(room: &Room, order: &Order) -> bool {
    match room.plans.look(&order.plan, |plan| !plan.state().archived) {
        Ok(current) => current,
        Err(_) => matches!(order.want, Want::Plan { .. }),
    }
}
