//! Goes through a query: what stands directly in an expression, and from there every name in it and how deep it is.

use crate::syntax::{Expression, Item, Pipeline, Shape, Source, Step};

/// Function that is called for each expression.
type On<'a, 'b> = &'b mut dyn FnMut(&'a Expression);

impl Expression {
    /// Calls for every name within, columns and tables alike.
    pub(crate) fn visit<'a>(&'a self, on: &mut impl FnMut(&'a str)) {
        if let Shape::Name(name) = &self.kind {
            on(name);
        }
        self.kind.children(&mut |child| child.visit(on));
    }
}

impl Shape {
    /// How many levels deep it is.
    pub(crate) fn height(&self) -> usize {
        let mut highest = 0;
        self.children(&mut |child| highest = highest.max(child.height));
        highest + 1
    }

    fn children<'a>(&'a self, on: On<'a, '_>) {
        match self {
            Shape::Literal(_) | Shape::Star | Shape::Name(_) => {}
            Shape::Member(value, _) | Shape::Negative(value) => on(value),
            Shape::Index(a, b) | Shape::Binary(_, a, b) | Shape::Matches(_, a, b, _) => {
                on(a);
                on(b);
            }
            Shape::Call(_, all) | Shape::All(_, all) => all.iter().for_each(on),
            Shape::OneOf(_, value, all, _) => {
                on(value);
                all.iter().for_each(on);
            }
            Shape::Between(a, b, c, _) => [a, b, c].into_iter().for_each(|it| on(it)),
            Shape::Pipeline(pipeline) => in_pipeline(pipeline, on),
            Shape::Function(function) => {
                function.parameters.iter().filter_map(|it| it.default.as_ref()).for_each(&mut *on);
                function.body.lets.iter().for_each(|it| on(&it.value));
                on(&function.body.body);
            }
        }
    }
}

fn in_pipeline<'a>(pipeline: &'a Pipeline, on: On<'a, '_>) {
    match &pipeline.source {
        Source::Expression(expression) => on(expression),
        Source::Union(union) => union.tables.iter().for_each(&mut *on),
        Source::Print(items) => in_items(items, on),
        Source::Datatable(_, cells, _) => cells.iter().for_each(&mut *on),
        Source::Range(_, bounds) => bounds.iter().for_each(&mut *on),
    }
    pipeline.operators.iter().for_each(|operator| in_step(&operator.kind, on));
}

fn in_items<'a>(items: &'a [Item], on: On<'a, '_>) {
    items.iter().for_each(|item| on(&item.value));
}

fn in_step<'a>(step: &'a Step, on: On<'a, '_>) {
    match step {
        Step::Where(value) | Step::Take(value) => on(value),
        Step::Extend(items) | Step::Serialize(items) | Step::Project(items) => in_items(items, on),
        Step::Summarize(values, by) => {
            in_items(values, on);
            in_items(by, on);
        }
        Step::Distinct(values) => values.iter().for_each(on),
        Step::Join(join) => {
            on(&join.right);
            join.conditions.iter().for_each(on);
        }
        Step::Invoke(_, arguments) => arguments.iter().for_each(on),
        Step::MakeSeries(series) => {
            for (item, default) in &series.values {
                on(&item.value);
                default.iter().for_each(&mut *on);
            }
            [&series.axis.value, &series.step].into_iter().for_each(&mut *on);
            series.from.iter().chain(&series.to).for_each(&mut *on);
            in_items(&series.by, on);
        }
        Step::MvExpand(expand) => {
            expand.values.iter().for_each(|(item, _)| on(&item.value));
            expand.limit.iter().for_each(on);
        }
        Step::Parse(parse) => on(&parse.value),
        Step::TopNested(levels) => levels.iter().for_each(|level| {
            level.count.iter().for_each(&mut *on);
            on(&level.value.value);
            on(&level.by.value);
        }),
        Step::Union(union) => union.tables.iter().for_each(on),
        Step::Sort(keys) => keys.iter().for_each(|key| on(&key.value)),
        Step::Top(count, keys) => {
            on(count);
            keys.iter().for_each(|key| on(&key.value));
        }
        Step::ProjectAway(_) | Step::ProjectKeep(_) | Step::ProjectReorder(_) | Step::ProjectRename(_) => {}
        Step::Count | Step::GetSchema | Step::Render(_) => {}
    }
}
