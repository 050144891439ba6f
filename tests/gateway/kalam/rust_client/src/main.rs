//! Consumes a topic with KalamDB's own client: URL USER PASSWORD TOPIC GROUP COUNT.
//! Prints each message, commits, and prints up to where.

use std::{env, time::Duration};

use kalam_client::{consumer::{AutoOffsetReset, TopicConsumer}, AuthProvider};

#[tokio::main]
async fn main() {
    let given: Vec<String> = env::args().skip(1).collect();
    let count: usize = given[5].parse().expect("COUNT is a number");
    let mut consumer = TopicConsumer::builder()
        .base_url(&given[0])
        .auth(AuthProvider::basic_auth(given[1].clone(), given[2].clone()))
        .topic(&given[3])
        .group_id(&given[4])
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(false)
        .max_poll_records(2)
        .poll_timeout(Duration::from_secs(1))
        .build()
        .expect("a consumer");
    let mut seen = 0;
    while seen < count {
        let records = consumer.poll().await.expect("a poll");
        for record in &records {
            println!(
                "{} {} {:?} {:?} {}",
                record.offset,
                String::from_utf8_lossy(&record.payload),
                record.op,
                record.message_id,
                record.source_table
            );
            consumer.mark_processed(record);
            seen += 1;
        }
    }
    let committed = consumer.commit_sync().await.expect("a commit");
    println!("committed {}", committed.acknowledged_offset);
}
