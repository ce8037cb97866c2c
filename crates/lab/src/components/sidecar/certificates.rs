//! The certificates of a trial's sidecars: an authority, and one certificate for each service.
//!
//! They are made when a trial begins and lie in its folder, readable for their owner alone; they go with it. The
//! authority's own key is never written, so nobody can join later.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// One service's files, PEM all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::components) struct Files {
    /// The authority's certificate.
    pub(in crate::components) ca: PathBuf,
    /// The service's certificate.
    pub(in crate::components) certificate: PathBuf,
    /// Its key. Some proxies look for it under this name beside the certificate.
    pub(in crate::components) key: PathBuf,
}

impl Files {
    pub(in crate::components) fn of(folder: &Path, service: &str) -> Self {
        Self {
            ca: folder.join("ca.pem"),
            certificate: folder.join(format!("{service}.service.pem")),
            key: folder.join(format!("{service}.service.pem.key")),
        }
    }
}

/// Makes the authority and a certificate for each of the services, by its name.
pub(in crate::components) fn make(folder: &Path, services: &[&str]) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::File {
        what: "create",
        path: folder.to_owned(),
        source,
    })?;
    let issuer = authority().map_err(|error| failed("the trial", &error))?;
    for service in services {
        let files = Files::of(folder, service);
        let (certificate, key) = leaf(&issuer, service).map_err(|error| failed(service, &error))?;
        write(&files.ca, &issuer.pem())?;
        write(&files.certificate, &certificate)?;
        write(&files.key, &key)?;
    }
    Ok(())
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Result<Issuer, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "narrows trial");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn leaf(issuer: &Issuer, service: &str) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new([service.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, service);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, issuer)?.pem(), key.serialize_pem()))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = std::fs::File::options();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| Error::File {
        what: "write",
        path: path.to_owned(),
        source,
    })
}

fn failed(whose: &str, error: &rcgen::Error) -> Error {
    super::failed(whose, &format!("cannot make the certificate of its sidecar: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_service_gets_its_own_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &["customer", "first_name"]).unwrap();
        let files = ["customer", "first_name"].map(|service| Files::of(folder.path(), service));
        let read = |path: &Path| {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::read_to_string(path).unwrap()
        };
        let texts = files.map(|files| (read(&files.ca), read(&files.certificate), read(&files.key)));
        assert_eq!(texts[0].0, texts[1].0);
        assert!(texts[0].1 != texts[1].1 && texts[0].2 != texts[1].2);
        assert!(texts[0].1.starts_with("-----BEGIN CERTIFICATE-----") && texts[0].2.contains("PRIVATE KEY"));
    }
}
