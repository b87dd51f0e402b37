//! Formats of plain columns: each is a line that says what its columns hold, and their names.
//!
//! **What lives here**: these lines. **What doesn't**: how they are read (`columns`).

use super::columns::Known;

macro_rules! known {
    ($( $(#[doc = $doc:literal])+ $name:ident: $columns:literal, $names:literal; )+) => { $(
        $(#[doc = $doc])+
        #[derive(Default)]
        pub(crate) struct $name;

        impl Known for $name {
            const COLUMNS: &'static str = $columns;
            const NAMES: &'static str = $names;
        }
    )+

        /// The columns and names of each.
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$(($columns, $names)),+];
    };
}

known! {
    /// MSR Cambridge (their README at SNIA IOTTA, block-io/388): Windows filetimes; `host,disk` is the device.
    /// The response time is the original device's.
    Msr: "time:100ns,device,device#,op:Read/Write,lba:1,len:1,#",
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    /// SYSTOR '17 (their README at SNIA IOTTA, block-io/4928): a record with a blank type is skipped.
    Systor: "time:s,#,op:R/W/!,device#,lba:1,len:1",
        "Timestamp,Response,IOType,LUN,Offset,Size";
    /// DiskSim's columns in MQSim's units (MQSim's README, "Trace format"). DiskSim's own decimal milliseconds are
    /// refused: to read them as nanoseconds would be silent nonsense.
    DiskSim: "time:ns device# lba len op:1/0",
        "arrival_ns device lba sectors type";
    /// Alibaba (the README of github.com/alibaba/block-traces).
    Alibaba: "device#,op:R/W,lba:1,len:1,time:us",
        "device_id,opcode,offset,length,timestamp";
    /// Tencent (Zhang et al., "OSCA: An Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems",
    /// USENIX ATC 2020; SNIA IOTTA, block-io/27917). Requests of one second have one time.
    Tencent: "time:s,lba,len,op:0/1,device#",
        "Timestamp,Offset,Size,IOType,VolumeID";
    /// The UMass repository's (SPC Trace File Format Specification, revision 1.0.1): what follows the fifth column is
    /// the record's own business.
    Spc: "device#,lba,len:1,op:R/W,time:s,..",
        "ASU,LBA,Size,Opcode,Timestamp";
    /// FIU (their README at SNIA IOTTA, block-io/390: Koller and Rangaswami, "I/O Deduplication", FAST 2010). The
    /// checksum of the content may be missing.
    Fiu: "time:ns # - lba len op:R/W device# device# ..",
        "timestamp pid process lba size op major minor md5";
}

#[cfg(test)]
mod tests {
    use super::super::super::columns::Columns;
    use super::*;

    #[test]
    fn each_line_can_be_used_and_names_its_columns() {
        for (columns, names) in ALL {
            let described = columns.parse::<Columns>().unwrap_or_else(|e| panic!("{columns}: {e}"));
            assert_eq!(described.to_string(), *columns);
            let separator = |c: char| c == ',' || c == ' ';
            let count = columns.split(separator).filter(|word| *word != "..").count();
            assert!(names.split(separator).count() >= count, "{names}");
        }
    }
}
