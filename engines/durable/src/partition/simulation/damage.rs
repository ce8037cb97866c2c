//! Damage to the files of a hub while no process has it open: the hub is refused, or shows all that was
//! acknowledged. It is then worked with and opened again, as damage may also show later.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::hub::agreement;
use crate::ids::PartitionId;
use crate::partition::Partition;
use crate::partition::input::{Input, Request};
use crate::partition::simulation::digest::digest;
use crate::partition::simulation::disk::Disk;
use crate::partition::simulation::world::World;
use crate::store::{FrameBatch, Store, StoreError};

impl World {
    /// Damages a copy of the disk and opens it. An error is a refusal.
    pub(super) fn try_damage(&mut self) {
        let (disk, what) = self.disk.damaged(&mut self.chance);
        self.trace.step(format!("what if {what}?"));
        self.tally.damages += 1;
        let disk = Arc::new(disk);
        let Ok(mut partitions) = self.reopened(&disk) else { return };
        self.tally.damages_borne += 1;
        for (partition, node) in partitions.iter_mut().zip(&self.nodes) {
            let (end, known) = (partition.position(), self.disk.end(node.id));
            assert!(end >= known, "{what}, and {} opens at {end:?}, {known:?} was acknowledged", node.id);
            if let Some(noted) = node.states.get(&end) {
                assert_eq!(digest(partition), *noted, "{what}, and {} opens with something else", node.id);
            }
        }
        for partition in &mut partitions {
            self.work_on(partition, &disk);
        }
        if self.chance.one_in(2) {
            disk.machine.lose_power();
        }
        let mut again = self.reopened(&disk).unwrap_or_else(|error| panic!("{what}, seen too late: {error}"));
        for (before, after) in partitions.iter_mut().zip(&mut again) {
            assert_eq!(digest(before), digest(after), "{what}, and what was done since is lost");
        }
    }

    /// Opens a copy of the disk on which the end of a log is lost. That can be noticed only by what others know.
    pub(super) fn try_lost_end(&mut self) {
        let (disk, lost) = self.disk.without_an_end(&mut self.chance);
        self.trace.step(format!("what if the end of the log of {lost} were lost?"));
        let disk = Arc::new(disk);
        let Ok(partitions) = disk.try_open().and_then(|()| self.recovered_from(&disk)) else { return };
        let end = partitions[usize::from(lost.0)].position();
        assert!(!self.disk.is_missed(lost, end), "{lost} opens at {end:?}, and others know of more");
    }

    /// Opens a disk, and all partitions on it.
    fn reopened(&self, disk: &Arc<Disk>) -> Result<Vec<Partition>, StoreError> {
        disk.try_open()?;
        for id in (0..self.setting.partitions).map(PartitionId) {
            disk.take_up(id)?;
        }
        self.recovered_from(disk)
    }

    fn recovered_from(&self, disk: &Arc<Disk>) -> Result<Vec<Partition>, StoreError> {
        let mut partitions = Vec::new();
        for id in (0..self.setting.partitions).map(PartitionId) {
            let mut partition = self.setting.partition(id, &self.program, Arc::clone(disk) as Arc<dyn Store>);
            partition.recover(&**disk)?;
            partitions.push(partition);
        }
        agreement::check(&partitions.iter().map(Partition::lane_progress).collect::<Vec<_>>())?;
        Ok(partitions)
    }

    /// Lets a partition write a frame.
    fn work_on(&mut self, partition: &mut Partition, disk: &Disk) {
        let kind = self.workload.probe(&mut self.chance);
        let (reply, _) = oneshot::channel();
        let now = self.now;
        let mut inputs = std::iter::once(Input::Request(Request { kind, reply }));
        let Some(sealed) = partition.turn(&mut inputs, now) else { return };
        let mut batch = FrameBatch::default();
        batch.push(sealed.frame);
        for (name, payload) in &sealed.blobs {
            disk.put_blob(name, payload.as_bytes()).expect("nothing fails here");
        }
        disk.write(partition.settings.id, &batch).expect("nothing fails here");
    }
}
