use std::path::Path;

use super::*;
use crate::fs::Advice;
use crate::sync::Mutex;

/// A direct file that takes whole blocks only and cuts its results anywhere.
struct Blocky {
    bytes: Mutex<Vec<u8>>,
    most: usize,
}

impl File for Blocky {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        assert_eq!(offset % 4096, 0, "a direct read starts at a block");
        let bytes = self.bytes.lock();
        let rest = &bytes[(offset as usize).min(bytes.len())..];
        let count = rest.len().min(buf.len()).min(self.most);
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> IoResult<usize> {
        assert_eq!(offset % 4096, 0, "a direct write starts at a block");
        let count = bytes.len().min(self.most);
        let mut content = self.bytes.lock();
        let end = offset as usize + count;
        let len = content.len().max(end);
        content.resize(len, 0);
        content[offset as usize..end].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync_data(&self) -> IoResult<()> {
        Ok(())
    }

    fn sync_all(&self) -> IoResult<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> IoResult<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> IoResult<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn allocate(&self, _offset: u64, _len: u64) -> IoResult<()> {
        Ok(())
    }

    fn alignment(&self) -> usize {
        4096
    }

    fn advise(&self, _offset: u64, _len: u64, _advice: Advice) {}

    fn path(&self) -> &Path {
        Path::new("blocky")
    }
}

#[test]
fn a_cut_inside_a_block_resumes_at_its_start() {
    let bytes: Vec<u8> = (0..251).cycle().take(5 * 4096).collect();
    let file = Blocky { bytes: Mutex::default(), most: 5000 };
    write_all_at(&file, &bytes, 4096).unwrap();
    assert!(file.bytes.lock()[4096..] == bytes[..]);
    let mut back = vec![0; bytes.len()];
    read_exact_at(&file, &mut back, 4096).unwrap();
    assert!(back == bytes);

    file.set_len(2 * 4096 + 100).unwrap();
    assert_eq!(read_full_at(&file, &mut back, 4096).unwrap(), 4196, "a ragged end is the end");
}

#[test]
fn less_than_a_block_at_a_time_is_an_error() {
    let file = Blocky { bytes: Mutex::new(vec![0; 3 * 4096]), most: 100 };
    let mut buf = vec![0; 2 * 4096];
    assert_eq!(read_full_at(&file, &mut buf, 0).unwrap_err().kind(), io::ErrorKind::Other);
    assert_eq!(write_all_at(&file, &buf, 0).unwrap_err().kind(), io::ErrorKind::WriteZero);
}
